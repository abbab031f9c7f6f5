//! The scalar facts of an architecture, in sections as they stand in the file. One line a key: adding a fact is
//! adding a line here and values to `targets.toml`.

use super::known::{Entry, Evidence, Fact};
use super::read::{FromToml, Reader};
use std::fmt::{self, Display};
use std::sync::Arc;
use toml::de::DeValue;

/// Declares groups of facts: reading, laying over inherited values, and listing come from the one declaration.
macro_rules! facts {
    ($( $(#[$doc:meta])* $group:ident { $( $(#[$kdoc:meta])* $key:ident: $t:ty, )* } )*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, Default)]
        pub struct $group { $( $(#[$kdoc])* pub $key: Fact<$t>, )* }

        impl Group for $group {
            fn read(&mut self, reader: &Reader, owner: &Arc<str>) {
                let evidence = Evidence::read(reader, owner);
                let mut stated: Vec<&str> = Vec::new();
                $( if let Some((value, span)) = reader.get::<$t>(stringify!($key)) {
                    stated.push(stringify!($key));
                    self.$key = Some(evidence.known(stringify!($key), value, span));
                } )*
                evidence.check(reader, &stated);
            }

            fn entries(&self, prefix: &str, out: &mut Vec<Entry>) {
                $( if let Some(k) = &self.$key {
                    out.push(k.entry(format!("{prefix}.{}", stringify!($key)), Show(&k.value)));
                } )*
            }
        }
    )* };
}

/// A group of facts that one table of the file states.
pub(super) trait Group {
    /// Lays the values that a table states over those already here.
    fn read(&mut self, reader: &Reader, owner: &Arc<str>);
    fn entries(&self, prefix: &str, out: &mut Vec<Entry>);
}

macro_rules! sections {
    ($( $field:ident: $group:ident, )*) => {
        /// The sections of an architecture.
        #[derive(Clone, Debug, Default)]
        pub struct Facts { $( pub $field: $group, )* }

        impl Facts {
            pub(super) fn read(&mut self, arch: &Reader, owner: &Arc<str>) {
                $( if let Some(table) = arch.table(stringify!($field)) {
                    self.$field.read(&table, owner);
                    table.finish();
                } )*
            }

            pub(super) fn entries(&self, out: &mut Vec<Entry>) {
                $( self.$field.entries(stringify!($field), out); )*
            }
        }
    };
}

sections! {
    threads: Threads,
    registers: Registers,
    shared: SharedMemory,
    barriers: Barriers,
    access: Access,
    simd: Simd,
    rates: Rates,
    costs: Costs,
}

facts! {
    /// Threads of a block and how they are grouped.
    Threads {
        /// lanes that share an instruction
        warp_size: u32,
        /// lanes that a shuffle reaches; may be less than a warp
        shuffle_width: u32,
        /// threads of the team that wide matrix instructions want
        group_size: u32,
        max_per_block: u32,
        /// along x, y, z
        max_block: Vec<u32>,
        /// along x, y, z
        max_grid: Vec<u32>,
        max_per_processor: u32,
        max_blocks_per_processor: u32,
        /// blocks of a cluster that every device of the architecture grants
        max_cluster: u32,
    }

    /// 32-bit registers.
    Registers {
        per_block: u32,
        per_processor: u32,
        max_per_thread: u32,
        /// a warp's registers come in multiples of this
        warp_step: u32,
        /// quotas can move between groups at run time, in multiples of this
        quota_step: u32,
    }

    /// Memory that a block shares.
    SharedMemory {
        max_bytes: u32,
        /// what a block gets without asking the driver
        default_bytes: u32,
        bytes_per_processor: u32,
        /// taken by the system from each block
        reserved_bytes: u32,
        banks: u32,
        bank_bytes: u32,
        /// bytes that the banks deliver in one cycle; wider accesses of a warp take several phases
        phase_bytes: u32,
    }

    /// Barriers inside a block.
    Barriers {
        /// what an arrival counts: `thread` or `warp`
        unit: String,
        /// which barriers there are: `block`, `named`, `counted`, `cluster`
        kinds: Vec<String>,
        /// barriers of part of a block
        named: u32,
        /// barriers that also count bytes, where they are a hardware resource
        counted: u32,
    }

    /// Accesses of one thread to memory.
    Access {
        /// widest legal access
        max_bytes: u32,
        /// the access that `target.vec(T)` speaks of
        vector_bytes: u32,
        /// best width by bits of the element
        preferred_bytes: ByWidth,
        /// an access must be aligned to its own width
        natural_align: bool,
        /// least alignment where `natural_align` is false
        min_align_bytes: u32,
        /// bytes of one transaction of the memory system
        line_bytes: u32,
        /// bytes that a processor must have in flight to fill the memory's bandwidth
        in_flight_bytes: u32,
    }

    /// Vector units of a processor core.
    Simd {
        /// instruction set family, as Rust's `std::env::consts::ARCH` spells it
        machine: String,
        /// processor name for the code generator
        cpu: String,
        bits: u32,
        /// feature names that a host must report
        features: Vec<String>,
        vector_registers: u32,
        mask_registers: u32,
        /// matrix tile registers and their bytes
        tile_registers: u32,
        tile_bytes: u32,
    }

    /// Results a clock of one processor.
    Rates {
        fma_f32: f64,
        exp2_f32: f64,
        max_f32: f64,
        convert_f32: f64,
        /// floating-point operations of the matrix unit on 16-bit operands
        matrix_16: f64,
        /// the same through the one-warp instructions, where they are slower
        warp_matrix_16: f64,
    }

    /// A copy engine or an asynchronous kind of access.
    EngineFacts {
        /// `load` (global to shared), `store` (shared to global) or `both`
        direction: String,
        instruction: String,
        /// bytes of one access, where only some are legal
        sizes: Vec<u32>,
        max_rank: u32,
        /// largest box extent along any axis, in elements
        max_box: u32,
        /// bytes of the box's fastest axis must be a multiple of this
        inner_multiple: u32,
        /// most bytes of the box's fastest axis under each of `swizzles`
        swizzle_inner: Vec<u32>,
        /// global strides must be multiples of this many bytes
        stride_multiple: u32,
        global_align: u32,
        shared_align: u32,
        /// address maps that the engine applies, such as `xor<3,4,3>`
        swizzles: Vec<String>,
        /// `counted` (bytes on a barrier), `fifo` (groups in order) or `now`
        completion: String,
        /// most groups that a wait can leave in flight; absent: any number
        max_keep: u32,
        /// a wait can be for the reads alone
        read_completion: bool,
        /// `async` where the engine's accesses need a fence against ordinary ones
        proxy: String,
        /// elements outside the tensor arrive as zeros
        zero_fill: bool,
        /// one load can fill several blocks of a cluster
        multicast: bool,
        /// who issues: `thread` (every thread its own part) or `one` (one elected thread)
        issue: String,
    }

    /// A product's counts and bandwidths.
    ChipFacts {
        /// multiprocessors, or cores
        processors: u32,
        clock_mhz: u32,
        memory_bytes: u64,
        memory_gb_per_s: f64,
        /// what the best kernel that only reads reaches
        read_gb_per_s: f64,
        /// what the best copy reaches, bytes read and written together
        copy_gb_per_s: f64,
        l1_bytes: u32,
        l2_bytes: u32,
        l3_bytes: u32,
        /// of one core
        l1_gb_per_s: f64,
        l2_gb_per_s: f64,
        l3_gb_per_s: f64,
        power_watts: u32,
    }

    /// Relative prices, in issue slots of one warp, by which register conversions are chosen.
    Costs {
        shuffle: f64,
        select: f64,
        shared_store: f64,
        shared_load: f64,
        barrier: f64,
    }
}

/// A width in bytes by the element's width in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByWidth {
    pub b8: u32,
    pub b16: u32,
    pub b32: u32,
    pub b64: u32,
}

impl ByWidth {
    /// The width for elements of `bits` bits.
    pub fn of(&self, bits: u32) -> u32 {
        match bits {
            0..=8 => self.b8,
            9..=16 => self.b16,
            17..=32 => self.b32,
            _ => self.b64,
        }
    }
}

impl FromToml for ByWidth {
    const WANTED: &'static str = "widths by element size, such as { b8 = 16, b16 = 16, b32 = 16, b64 = 16 }";
    fn parse(value: &DeValue) -> Option<ByWidth> {
        let table = value.as_table()?;
        let width = |key: &str| table.get(key).and_then(|v| u32::parse(v.get_ref()));
        let all = ByWidth { b8: width("b8")?, b16: width("b16")?, b32: width("b32")?, b64: width("b64")? };
        (table.len() == 4).then_some(all)
    }
}

impl Display for ByWidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "8-bit {}, 16-bit {}, 32-bit {}, 64-bit {}", self.b8, self.b16, self.b32, self.b64)
    }
}

/// Prints any kind of value the way a person reads it.
pub(super) struct Show<'a, T>(pub &'a T);

macro_rules! show_plain {
    ($($t:ty),*) => { $( impl Display for Show<'_, $t> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, "{}", self.0) }
    } )* };
}
show_plain!(u32, u64, f64, bool, String, ByWidth);

impl<T: Display> Display for Show<'_, Vec<T>> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(|v| v.to_string()).collect();
        f.write_str(&all.join(", "))
    }
}
