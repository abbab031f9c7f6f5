//! What a signal that ends the command leaves behind: nothing half-written.

/// On Ctrl-C and its like, files under way go before the command does. Signals that the caller has turned off stay so.
#[cfg(unix)]
pub fn on_signals() {
    use pantile::runtime::files::abandon;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    let off = turned_off();
    let heeded = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(move |s| off >> (s - 1) & 1 == 0);
    let wait = move || {
        // without a handler the system's own way of ending holds
        let Ok(mut signals) = Signals::new(heeded) else { return };
        if let Some(signal) = signals.forever().next() {
            abandon();
            // ends the process as the signal would have
            let _ = emulate_default_handler(signal);
        }
    };
    // and without a thread
    let _ = std::thread::Builder::new().name("signals".into()).spawn(wait);
}

/// A bit for each signal that is ignored from the start, as for commands in the background of a script.
#[cfg(unix)]
fn turned_off() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(not(unix))]
pub fn on_signals() {}
