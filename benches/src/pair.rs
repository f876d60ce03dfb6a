//! Measuring two things in turns, so that whatever else the machine does meets both alike.

use std::time::{Duration, Instant};

/// Samples in ascending order; never none.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    /// These, or nothing if there are none.
    pub(crate) fn new(mut samples: Vec<f64>) -> Option<Self> {
        samples.sort_by(f64::total_cmp);
        (!samples.is_empty()).then_some(Self(samples))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn median(&self) -> f64 {
        self.percentile(50)
    }

    /// The smallest sample that is not exceeded by this many percent of them (nearest rank).
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0[rank.min(self.0.len()) - 1]
    }
}

/// Two things measured in turns.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Paired {
    pub(crate) ours: Samples,
    pub(crate) baseline: Samples,
    /// The median over the rounds of the ratio of their medians. What slows the machine down for a while slows both
    /// halves of a round, and so moves this less than the ratio of the medians over all.
    pub(crate) ratio: f64,
}

/// Measures in rounds; in each, both take their turn, and the other one begins the next round. What a turn gives is its
/// samples.
pub(crate) async fn in_turns<C>(
    rounds: usize,
    context: &mut C,
    mut ours: impl AsyncFnMut(&mut C) -> anyhow::Result<Vec<f64>>,
    mut baseline: impl AsyncFnMut(&mut C) -> anyhow::Result<Vec<f64>>,
) -> anyhow::Result<Paired> {
    let (mut of_ours, mut of_baseline, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let (left, right) = if round % 2 == 0 {
            let left = ours(context).await?;
            (left, baseline(context).await?)
        } else {
            let right = baseline(context).await?;
            (ours(context).await?, right)
        };
        if let (Some(left), Some(right)) = (Samples::new(left.clone()), Samples::new(right.clone())) {
            ratios.push(left.median() / right.median());
        }
        of_ours.extend(left);
        of_baseline.extend(right);
    }
    let nothing = || anyhow::anyhow!("nothing was measured");
    Ok(Paired {
        ours: Samples::new(of_ours).ok_or_else(nothing)?,
        baseline: Samples::new(of_baseline).ok_or_else(nothing)?,
        ratio: Samples::new(ratios).ok_or_else(nothing)?.median(),
    })
}

/// A duration as samples are kept: in microseconds.
pub(crate) fn microseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// The time since `begun` in microseconds.
pub(crate) fn since(begun: Instant) -> f64 {
    microseconds(begun.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(count: usize) -> Samples {
        Samples::new((1..=count).rev().map(|number| number as f64).collect()).unwrap()
    }

    #[test]
    fn percentiles_are_samples() {
        for (count, percent, expected) in
            [(1, 50, 1.0), (1, 99, 1.0), (4, 50, 2.0), (5, 50, 3.0), (100, 99, 99.0), (300, 99, 297.0)]
        {
            assert_eq!(samples(count).percentile(percent), expected, "{percent} percent of {count}");
        }
        assert_eq!(Samples::new(Vec::new()), None);
    }

    #[test]
    fn both_take_turns_and_a_slow_while_does_not_move_the_ratio() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut order = String::new();
        // The machine is ten times slower in the second half.
        let slowness = |order: &String| if order.len() < 4 { 1.0 } else { 10.0 };
        let paired = runtime
            .block_on(in_turns(
                4,
                &mut order,
                async |order| {
                    order.push('o');
                    Ok(vec![3.0 * slowness(&order[..order.len() - 1].to_owned()); 3])
                },
                async |order| {
                    order.push('b');
                    Ok(vec![2.0 * slowness(&order[..order.len() - 1].to_owned()); 2])
                },
            ))
            .unwrap();
        assert_eq!(order, "obboobbo");
        assert_eq!((paired.ours.len(), paired.baseline.len(), paired.ratio), (12, 8, 1.5));
    }
}
