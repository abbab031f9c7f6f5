use super::*;
use proptest::prelude::*;

fn round_trips(elem: Elem, x: u64) {
    let text = print_value(elem, x);
    let back = parse_value(elem, &text).unwrap_or_else(|e| panic!("{elem} {x:#x} {text}: {e}"));
    assert!(
        back == x || is_nan(elem, x) && is_nan(elem, back),
        "{elem}: {x:#x} prints {text}, reads {back:#x}"
    );
    if elem.is_float() && !is_nan(elem, x) && !is_inf(elem, x) {
        assert!(text.contains(['.', 'e']), "{text} would read as an integer");
    }
}

#[test]
fn every_narrow_value_prints_and_parses() {
    for elem in all_elems().filter(|&e| bits(e) <= 16) {
        let all = (0..1u64 << bits(elem)).filter_map(|raw| bitcast_slice(raw_type(elem), elem, &[raw]));
        all.for_each(|x| {
            round_trips(elem, x[0]);
            if elem.is_float() {
                reads_through_f64(elem, x[0]);
            }
        });
    }
}

/// Text is read as f64 first, then rounded to the type of its place.
fn reads_through_f64(elem: Elem, x: u64) {
    let text = print_value(elem, x);
    let v: f64 = text.parse().unwrap();
    assert!(from_f64(elem, v) == Ok(x) || is_nan(elem, x), "{elem}: {x:#x} prints {text}");
}

fn raw_type(elem: Elem) -> Elem {
    Elem::D(match bits(elem) {
        4 => DType::U4,
        8 => DType::U8,
        _ => DType::U16,
    })
}

proptest! {
    #[test]
    fn wide_values_print_and_parse(x: u64) {
        round_trips(Elem::D(DType::F64), x);
        round_trips(Elem::F32, x >> 32);
        reads_through_f64(Elem::F32, x >> 32);
        round_trips(Elem::Index, x);
        round_trips(Elem::D(DType::I64), x);
        round_trips(Elem::D(DType::U64), x);
    }

    #[test]
    fn any_text_is_a_value_or_an_error(text in "[-+0-9a-fxine._]{0,12}") {
        for elem in all_elems() {
            if let Ok(x) = parse_value(elem, &text) {
                round_trips(elem, x);
            }
        }
    }
}

#[test]
fn canonical_text() {
    let f16 = Elem::D(DType::F16);
    for (elem, text) in [
        (Elem::F32, "0.1"),
        (Elem::F32, "1.0"),
        (Elem::F32, "-0.0"),
        (Elem::F32, "16777216.0"),
        (Elem::F32, "1e30"),
        (Elem::F32, "1.5e-7"),
        (Elem::F32, "0.0001"),
        (Elem::F32, "1e-45"),
        (f16, "65504.0"),
        (f16, "6e-8"),
        (f16, "0.3333"),
        (Elem::D(DType::BF16), "3.14"),
        (Elem::D(DType::F8E4M3), "448.0"),
        (Elem::D(DType::F64), "0.1"),
        (Elem::D(DType::F64), "5e-324"),
        (Elem::D(DType::I8), "-128"),
        (Elem::BOOL, "true"),
        (Elem::F32, "inf"),
        (Elem::F32, "-inf"),
        (Elem::F32, "nan"),
    ] {
        assert_eq!(print_value(elem, parse_value(elem, text).unwrap()), text, "{elem}");
    }
}

#[test]
fn decimals_round_once() {
    let f16 = |text: &str| parse_value(DType::F16.into(), text).unwrap();
    // 1 + 2^-11 is a tie between 1 and 1 + 2^-10; f64 cannot tell the last two from it
    assert_eq!(f16("1.00048828125"), 0x3c00);
    assert_eq!(f16("1.00048828125000000000000000000001"), 0x3c01);
    assert_eq!(f16("1.00048828124999999999999999999999"), 0x3c00);
    assert_eq!(f16("1.00146484375"), 0x3c02);
    assert_eq!(f16("1.00146484374999999999999999999999"), 0x3c01);
    assert_eq!(f16("100048828125.000000000000000000001e-11"), 0x3c01);
    let e4m3 = |text: &str| parse_value(DType::F8E4M3.into(), text);
    assert_eq!(e4m3("464.0"), Ok(0x7e));
    assert!(matches!(e4m3("464.00000000000000000000000001"), Err(LiteralError::OutOfRange { .. })));
    assert_eq!(f16("65519.99999999999999999999999999"), 0x7bff);
    assert!(parse_value(DType::F16.into(), "65520.0").is_err());
}

#[test]
fn what_cannot_be_represented() {
    let message = |elem: Elem, text: &str| parse_value(elem, text).unwrap_err().to_string();
    assert_eq!(message(DType::U8.into(), "300"), "`300` does not fit into u8 (0 to 255)");
    assert_eq!(message(DType::I4.into(), "-9"), "`-9` does not fit into i4 (-8 to 7)");
    assert_eq!(message(DType::U8.into(), "-1"), "`-1` does not fit into u8 (0 to 255)");
    assert_eq!(message(Elem::F32, "1e400"), "`1e400` does not fit into f32 (largest 3.4028235e38)");
    assert_eq!(message(DType::F16.into(), "70000"), "`70000` does not fit into f16 (largest 65504.0)");
    assert_eq!(message(Elem::F32, "16777217"), "`16777217` is not a value of f32; the nearest is 16777216.0");
    assert_eq!(message(DType::F16.into(), "1e-30"), "`1e-30` is too small for f16: it would be zero");
    assert_eq!(message(DType::I32.into(), "1.0"), "`1.0` is not a literal of i32");
    assert_eq!(message(Elem::BOOL, "1"), "`1` is not a literal of bool");
    assert_eq!(message(Elem::F32, "1e5x"), "`1e5x` is not a number");
    assert_eq!(message(Elem::Index, "0x"), "`0x` is not a number");
    assert_eq!(message(DType::F8E4M3.into(), "inf"), "`inf` does not fit into f8e4m3 (largest 448.0)");
    assert_eq!(
        message(DType::U64.into(), "999999999999999999999999999999999999999999"),
        "`999999999999999999999999999999999999999999` does not fit into u64 (0 to 18446744073709551615)"
    );
}

#[test]
fn written_forms() {
    assert_eq!(int_literal(DType::U8.into(), "0xff", false), Ok(255));
    assert_eq!(int_literal(DType::I32.into(), "1_000", true), Ok(-1000i64 as u64));
    assert_eq!(int_literal(Elem::Index, "9223372036854775808", true), Ok(i64::MIN as u64));
    assert_eq!(int_literal(Elem::F32, "2", false), Ok(0x4000_0000));
    assert_eq!(int_literal(Elem::F32, "0", true), Ok(0x8000_0000));
    assert_eq!(float_literal(Elem::F32, "1_0.5e0", true), Ok((-10.5f32).to_bits() as u64));
}
