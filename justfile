# `just` lists these; https://just.systems

_default:
    @just --list

# What has to pass before a change lands
check:
    .ci/run

# Speed as ratios, in one table; takes some minutes
bench *options:
    cargo run --release -p toolexec-bench -- {{options}}

# The decoders against hostile bytes, each target for this many seconds
fuzz seconds="60":
    scripts/fuzz {{seconds}}

# The random tests again and again, for this many minutes
soak minutes="10":
    scripts/soak {{minutes}}
