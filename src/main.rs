//! The `pantile` command.

mod cli;

/// The compiler makes many small things for a short time; the system's allocator gives their pages back too eagerly.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}
