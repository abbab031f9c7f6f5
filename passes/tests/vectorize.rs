//! Wide accesses: what becomes of lanes, and that nothing changes its meaning.

mod support;

use pantile_ir::DType;
use pantile_ir::elab::Request;
use pantile_ir::print::print;
use pantile_ir::program::Stage;
use pantile_passes::vectorize;
use support::*;

#[test]
fn show() {
    let t = arch("sm_80");
    for name in ["gemv_vectorized", "gemv_allreduce", "gemv_xcache", "gemv_alpha_beta"] {
        let p = library("gemv.tile", &Request::new(name).with_type("T", DType::F16), &t);
        let q = passed(vectorize::run, p.clone(), Stage::Threaded, &t);
        println!("{}", print(&q));
        for (n, k) in [(1, 1), (7, 33), (5, 1000), (3, 1152), (2, 0), (3, 300)] {
            if name == "gemv_alpha_beta" { continue; }
            let args = [tensor(DType::F16, &[k]), tensor(DType::F16, &[n, k]), out(DType::F16, &[n])];
            same(&p, &q, &args);
        }
    }
}
