//! What a kernel or op takes and what running it means.
//!
//! A [`Program`] is an entry that a user can call: its parameters and the steps that run its kernels. A lone kernel
//! is a program of one launch. Kernels name their own dims, so each launch binds its arguments anew.

use crate::{CpuAbi, DType, IExpr, Names, Signature};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a kernel may do with a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    In,
    /// Holds nothing on entry; every element is written.
    Out,
    InOut,
}

impl Mode {
    pub const fn writes(self) -> bool {
        !matches!(self, Mode::In)
    }

    pub const fn reads(self) -> bool {
        !matches!(self, Mode::Out)
    }
}

/// How 4-bit elements share a unit of storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PackOrder {
    /// Bytes; element 2i in the low half.
    Linear,
    /// 32-bit words of eight, lowest first.
    Gptq,
    /// 32-bit words of eight, in the order 0, 2, 4, 6, 1, 3, 5, 7 from the lowest.
    Awq,
}

impl PackOrder {
    /// Elements in one unit of storage.
    pub const fn per_unit(self) -> usize {
        match self {
            PackOrder::Linear => 2,
            PackOrder::Gptq | PackOrder::Awq => 8,
        }
    }

    pub const fn unit_bytes(self) -> usize {
        self.per_unit() / 2
    }

    /// The bit at which element `i` of a unit starts.
    pub const fn shift(self, i: usize) -> u32 {
        let place = match self {
            PackOrder::Linear | PackOrder::Gptq => i,
            PackOrder::Awq => i / 2 + (i % 2) * 4,
        };
        4 * place as u32
    }
}

/// A tensor's axis whose elements share units of storage. Strides of such a tensor count units, not elements:
/// element `(…, k, …)` lies in the unit at `Σ others·stride + (k / per_unit)·stride[axis]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Packing {
    pub axis: u32,
    pub order: PackOrder,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorAbi {
    pub name: String,
    pub mode: Mode,
    pub dtype: DType,
    pub dims: Vec<IExpr>,
    /// `None`: row-major without gaps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strides: Option<Vec<IExpr>>,
    /// Bytes, of the base address and of strides other than 1, where the user wrote `align`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub align: Option<u32>,
    /// Bytes that the code relies on of the base address alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_align: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packed: Option<Packing>,
}

impl TensorAbi {
    pub fn new(name: impl Into<String>, mode: Mode, dtype: DType, dims: Vec<IExpr>) -> TensorAbi {
        TensorAbi {
            name: name.into(),
            mode,
            dtype,
            dims,
            strides: None,
            align: None,
            base_align: None,
            packed: None,
        }
    }
}

/// The type of a scalar parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScalarType {
    Index,
    Typed(DType),
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScalarType::Index => f.write_str("index"),
            ScalarType::Typed(t) => t.fmt(f),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScalarAbi {
    pub name: String,
    pub ty: ScalarType,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParamAbi {
    Tensor(TensorAbi),
    Scalar(ScalarAbi),
}

impl ParamAbi {
    pub fn name(&self) -> &str {
        match self {
            ParamAbi::Tensor(t) => &t.name,
            ParamAbi::Scalar(s) => &s.name,
        }
    }

    pub fn as_tensor(&self) -> Option<&TensorAbi> {
        match self {
            ParamAbi::Tensor(t) => Some(t),
            ParamAbi::Scalar(_) => None,
        }
    }

    /// The parameter as the user would declare it.
    pub fn display<'a>(&'a self, names: &'a Names) -> impl fmt::Display + 'a {
        std::fmt::from_fn(move |f| match self {
            ParamAbi::Scalar(s) => write!(f, "{}: {}", s.name, s.ty),
            ParamAbi::Tensor(t) => {
                let mode = match t.mode {
                    Mode::In => "",
                    Mode::Out => "out ",
                    Mode::InOut => "inout ",
                };
                let dims: Vec<String> = t.dims.iter().map(|d| d.display(names).to_string()).collect();
                write!(f, "{}: {mode}{}[{}]", t.name, t.dtype, dims.join(", "))
            }
        })
    }
}

/// A compiled kernel's contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelAbi {
    pub name: String,
    /// The name under which a built object exports the kernel; equals `name` where nothing else was chosen.
    #[serde(default)]
    pub symbol: String,
    /// In the order of declaration.
    pub params: Vec<ParamAbi>,
    /// Names of the dims and named strides, by slot.
    pub dims: Vec<String>,
    /// What must hold of the dims, with the text that the user wrote.
    pub conditions: Vec<(IExpr, String)>,
    /// Blocks along each grid axis; one that is 0 launches nothing.
    pub grid: Vec<IExpr>,
    /// Threads along each thread axis; empty where the kernel names none.
    pub threads: Vec<u32>,
    /// How a build for the CPU is called; `None` for other targets and before code exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuAbi>,
}

impl KernelAbi {
    pub fn signature(&self) -> Signature<'_> {
        Signature { name: &self.name, params: &self.params, dims: &self.dims, conditions: &self.conditions }
    }
}

/// An entry: one kernel, or an op of several launches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    pub name: String,
    pub params: Vec<ParamAbi>,
    pub dims: Vec<String>,
    /// Loop variables of `steps`; they take the slots after those of `dims`.
    #[serde(default)]
    pub loop_vars: Vec<String>,
    pub conditions: Vec<(IExpr, String)>,
    pub kernels: Vec<KernelAbi>,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Makes the tensor that `Arg::Workspace(slot)` names.
    Workspace {
        slot: u32,
        name: String,
        dtype: DType,
        shape: Vec<IExpr>,
        zeroed: bool,
    },
    Launch {
        kernel: u32,
        args: Vec<Arg>,
    },
    If {
        cond: IExpr,
        then: Vec<Step>,
        other: Vec<Step>,
    },
    /// `lo..hi`; `var` is a dim slot, one of the program's loop variables.
    For {
        var: u32,
        lo: IExpr,
        hi: IExpr,
        body: Vec<Step>,
    },
}

/// What a launch hands to a kernel's parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arg {
    /// The program's parameter at this position, tensor or scalar.
    Param(u32),
    Workspace(u32),
    /// A scalar computed from dims and scalars; converted to the parameter's integer type, and must fit.
    Int(IExpr),
    /// A scalar constant, by its bits.
    Bits(DType, u64),
}

impl Program {
    /// The program of one launch.
    pub fn of_kernel(kernel: KernelAbi) -> Program {
        let args = (0..kernel.params.len() as u32).map(Arg::Param).collect();
        Program {
            name: kernel.name.clone(),
            params: kernel.params.clone(),
            dims: kernel.dims.clone(),
            loop_vars: Vec::new(),
            conditions: kernel.conditions.clone(),
            kernels: vec![kernel],
            steps: vec![Step::Launch { kernel: 0, args }],
        }
    }

    pub fn signature(&self) -> Signature<'_> {
        Signature { name: &self.name, params: &self.params, dims: &self.dims, conditions: &self.conditions }
    }

    /// Names for printing expressions of `steps`: dims, then loop variables.
    pub fn names(&self) -> Names {
        let mut names = self.signature().names();
        names.dims.extend(self.loop_vars.iter().cloned());
        names
    }

    pub fn param_index(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|p| p.name() == name)
    }
}
