//! What a tool wrote: collected head and tail under a bound, or passed on as it comes.
