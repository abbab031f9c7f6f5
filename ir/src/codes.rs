//! Every rule of the language and its tools that a diagnostic can name: one table, ascending.
//!
//! 1xx syntax · 2xx names and items · 3xx types and shapes · 4xx regions, memory, modes · 5xx teams, uniformity,
//! threads · 6xx stages, rings, tokens · 7xx run time · 8xx targets and limits · 9xx command line and files.
//! A number, once published, keeps its meaning; pages with examples live in `explain/`.

use crate::diag::Code;

/// One rule: its code, a name for machines, a title for people.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub code: Code,
    pub name: &'static str,
    pub title: &'static str,
}

macro_rules! codes {
    ($($name:ident = $number:literal, $title:literal;)*) => {
        $(#[doc = $title] pub const $name: Code = Code($number);)*

        /// All rules in ascending order of their codes.
        pub const TABLE: &[Row] = &[$(Row { code: $name, name: stringify!($name), title: $title }),*];
    };
}

codes! {
    // 1xx syntax
    UNEXPECTED = 101, "text that cannot stand here";
    BAD_CHARACTER = 102, "a character that the language does not use";
    UNCLOSED = 103, "a bracket that is never closed";
    STRAY_CLOSER = 104, "a closing bracket without an opening one";
    UNTERMINATED_STRING = 105, "a string without its closing quote";
    BAD_ESCAPE = 106, "an escape that strings do not know";
    BAD_NUMBER = 107, "a number that cannot be read";
    TOO_DEEP = 108, "brackets or blocks nested too deeply";
    RESERVED_WORD = 109, "a reserved word used as a name";
    CHAINED_COMPARISON = 110, "comparisons in a chain";
    ASSIGN_IN_CONDITION = 111, "`=` where a comparison is meant";
    UNKNOWN_WORD = 112, "a word that starts no item or statement";
    MISSING_BLOCK = 113, "a body without its braces";
    EXTENT_COLON = 114, "`:` where `+:` or `..` is meant";
    FOREIGN_SYNTAX = 115, "a form of another language";
    MISSING_NEWLINE = 116, "two statements on one line";
    DUPLICATE_CLAUSE = 117, "a clause written twice";
    MISSING_CLAUSE = 118, "a clause that may not be left out";
    TOO_LARGE = 119, "a source file that is too large";

    // 2xx names and items
    DUPLICATE_NAME = 201, "a name declared twice";
    UNKNOWN_NAME = 202, "a name that nothing declares";
    UNKNOWN_FILE = 203, "a file that cannot be found";
    UNKNOWN_IMPORT = 204, "an import that the file does not have";
    PREDECLARED_NAME = 205, "an item with a name of the language";
    SHADOWED_NAME = 206, "a name declared twice in one scope";
    NOT_A_VALUE = 207, "something else where a value is needed";
    NOT_A_TYPE = 208, "something else where an element type is needed";
    WRONG_TYPE_FORM = 209, "a type that cannot stand here";
    NOT_CALLABLE = 210, "a call of what is no function";
    ARGUMENT_COUNT = 211, "the wrong number of arguments";
    UNKNOWN_ARGUMENT = 212, "an argument that is not there";
    ARGUMENT_TYPE = 213, "an argument of the wrong type or shape";
    UNBOUND_GENERIC = 214, "a generic that nothing binds";
    WRONG_GENERIC = 215, "a generic bound to the wrong kind of thing";
    RECURSION = 216, "a definition that leads back to itself";
    NOT_CONSTANT = 217, "a run-time value where one is needed at compile time";
    WRONG_CONST = 218, "a compile-time value of the wrong kind";
    CONST_FAULT = 219, "compile-time arithmetic without a result";
    NUMBER_RANGE = 220, "a number that the type of its place cannot hold";
    PARAM_RANGE = 221, "a param outside its choices";
    UNKNOWN_PARAM = 222, "a value for a param that is not there";
    STATIC_ASSERT = 223, "a static assertion that does not hold";
    WHERE_FALSE = 224, "a launch condition that cannot hold";
    MISPLACED = 225, "a statement that cannot stand here";
    UNKNOWN_FIELD = 226, "a part that is not there";
    UNKNOWN_FACT = 227, "a fact about targets that does not exist";
    UNKNOWN_ENTRY = 228, "an entry that the file does not have";
    UNKNOWN_OPTION = 229, "an option that does not exist";
    NOT_ASSIGNABLE = 230, "an assignment to what is no variable";
    PATTERN = 231, "names and values that do not match in number";
    UNUSED_VALUE = 232, "a value that goes nowhere";
    NO_TYPE = 233, "a variable without type and value";
    NO_RESULT = 234, "a function that ends without its value";
    TWICE = 235, "something that may stand once";
    NOT_A_COMBINER = 236, "something else where a combiner is needed";
    NOT_A_KERNEL = 237, "a launch of what is no kernel";
    UNKNOWN_ARCH = 238, "an architecture that does not exist";
    UNKNOWN_STAGE = 239, "a stage that does not exist";
    PLAN_KEY = 240, "a plan entry that does not exist";
    PLAN_VALUE = 241, "a plan value that cannot be read";
    LAYOUT_TEXT = 242, "a layout that cannot be read";
    TOO_MANY_COPIES = 243, "a compile-time loop with too many copies";
    LOOP_RANGE = 244, "a loop over what is no range";
    LOOP_STEP = 245, "a step that does not count up";
    JUMP = 246, "a jump without a loop";
    WIDEN_BITS = 247, "a kernel that has no meaning in f64";
    GRID_VALUE = 248, "a grid that depends on data";
    SCALAR_MODE = 249, "a scalar that would be written";
    TEST = 250, "a test that cannot be run";
    UNFIT_TYPE = 251, "a type that the generics admit and the body does not";
    KEPT_NAME = 252, "a dim or parameter named like something of the language";
    NO_ENTRY = 291, "a program without an entry";
    OPEN_BLOCK = 292, "blocks that do not match";
    COMBINE_SHAPE = 293, "a combiner whose parts do not match";
    INTRINSIC_SHAPE = 294, "an intrinsic whose meaning is not one scalar";
    LAUNCH_ARGUMENTS = 295, "a launch that does not match its kernel";
    HOST_EXPRESSION = 296, "a value that is not known at launch";
    NOT_IN_SIGHT = 297, "a name used outside of what declares it";
    DECLARED_TWICE = 298, "a name that two statements declare";
    SAME_PARAMETER = 299, "two dims or parameters with one name";

    // 3xx types and shapes
    TYPE_MISMATCH = 301, "two types where one is needed";
    SHAPE_MISMATCH = 302, "tiles whose extents do not fit";
    RANK_MISMATCH = 303, "tiles of different rank";
    WRONG_OPERAND = 304, "an operator on a type that it does not take";
    NOT_BOOL = 305, "a condition that is not bool";
    TILE_CONDITION = 306, "a tile where control needs one bool";
    NEED_TILE = 307, "a scalar where a tile is needed";
    NEED_SCALAR = 308, "a tile where a scalar is needed";
    BAD_CAST = 309, "a conversion that does not exist";
    BAD_BITS = 310, "a bit view that does not fit";
    LITERAL_RANGE = 311, "a number that its type cannot hold";
    NO_SUCH_AXIS = 312, "an axis that is not there";
    WRONG_COUNT = 313, "the wrong number of operands";
    PRODUCT_TYPES = 314, "types that `@` does not multiply";
    PRODUCT_SHAPES = 315, "tiles whose extents `@` cannot join";
    COMBINER_TYPES = 316, "values that a combiner does not take";
    SLICE_OUTSIDE = 317, "a slice that leaves its tile";
    RESHAPE_COUNT = 318, "a reshape to another number of elements";
    NO_APPROX = 319, "an `.approx` form that does not exist";
    TOO_MANY_AXES = 320, "more axes than a tile or tensor may have";
    ATOMIC_TYPE = 321, "a type without this atomic operation";
    EMPTY_TILE = 322, "a tile without elements, or with too many";
    FOREIGN_HANDLE = 323, "a value that belongs to another kernel";
    STORE_TYPE = 324, "a value of another type than its place";
    RESULT_TYPE = 325, "a name of another type than its value";
    NOT_A_TOKEN = 326, "something else where a slot token is needed";
    SHIFT_RANGE = 327, "a shift by the width of its type or more";
    ACCUMULATOR = 328, "an accumulator of the wrong type or shape";
    DIVISION_BY_ZERO = 329, "a division by the number zero";
    INDEX_OVERFLOW = 330, "an index that does not fit into 64 bits";
    TOO_BIG = 331, "an expression or nesting that is too large";

    // 4xx regions, memory, modes
    INDEX_COUNT = 401, "the wrong number of indices";
    INDEX_TYPE = 402, "an index that is not one integer";
    NOT_A_TENSOR = 403, "a scalar parameter used as memory";
    ELEMENT_REGION = 404, "a region without an axis";
    GATHER_TYPE = 405, "an index list of the wrong type";
    NO_SUCH_FIELD = 406, "a slot field that its ring does not have";
    STRIDE_COUNT = 407, "strides that do not match the axes";
    BAD_PACKING = 408, "a packing that does not fit its tensor";
    BAD_ALIGN = 409, "an alignment that is not a power of two";
    WRITE_TO_IN = 410, "a write to an `in` tensor";
    READ_OF_OUT = 411, "a read of an `out` tensor that nothing has written";
    OUT_NOT_WRITTEN = 412, "an `out` tensor that is never written";
    OUTSIDE = 413, "an index that is outside for certain";
    UNASSIGNED = 414, "a `var` read before it is assigned";
    NOT_MUTABLE = 415, "a new value for a name that is not a `var`";
    BOX_AFTER_LOOP = 416, "a ragged edge that depends on a loop that has ended";
    REDUCER_AFTER_READ = 417, "an update of a reducer that was read";
    SAME_TENSOR = 418, "one tensor passed to two parameters of which one is written";
    WORKSPACE_UNWRITTEN = 419, "a workspace read before anything is written to it";
    LAUNCH_MODE = 420, "an `in` tensor passed to a parameter that is written";
    BLOCKS_COLLIDE = 421, "several blocks that write the same elements";

    PAD_PLACE = 430, "a pad where nothing is read";
    OPEN_AXIS = 431, "`:` on an axis without a known extent";
    TILE_LIMIT = 432, "a limit on a tile value";
    NOT_MEMORY = 433, "something else where memory is needed";
    REDUCER_USE = 434, "a reducer used out of turn";
    ARRAY_WITHOUT_THREADS = 435, "an array per thread in a kernel without threads";
    ARRAY_VALUE = 436, "an array per thread with an initial value";

    // 5xx teams, uniformity, threads
    DIVERGENT_CONTROL = 501, "a collective that some threads would not reach";
    DIVERGENT_OPERAND = 502, "a tile made with a value that differs between threads";
    STORE_RACE = 503, "threads that store different values in one place";
    DEPENDENT_LANES = 504, "lanes of `vectorized` that depend on each other";
    NEEDS_ORDERED = 505, "a warp operation where the threads' order is open";
    NEEDS_THREADS = 506, "a construct of threads in a kernel that names none";
    NO_LOOP = 507, "`break` or `continue` where no loop can be left";
    PARALLEL_ASSIGN = 508, "a variable of outside assigned in `parallel` or `vectorized`";
    PARALLEL_COLLECTIVE = 509, "a collective inside `parallel`";
    GRID_OPERAND = 510, "a grid extent that is not known at launch";
    DIVERGENT_INDEX = 511, "a tile element at an index that differs between threads";
    FLOAT_ATOMIC = 512, "a float atomic where the result must be deterministic";
    PARTIAL_EXCHANGE = 513, "values exchanged where only a part of a warp or block arrives";
    UNORDERED = 514, "threads that meet in memory without an order between them";
    LAZY_COLLECTIVE = 530, "work of the whole team in a value that may not be evaluated";
    NO_TEAM = 531, "a team that does not exist";

    // 6xx stages, rings, tokens
    STAGE_OP = 601, "an operation that this stage does not have";
    STAGE_ATTRIBUTE = 602, "an attribute that this stage does not have";
    TOKEN_KEPT = 603, "a slot that is never given back";
    TOKEN_TWICE = 604, "a slot used after it was given back";
    TOKEN_ROLE = 605, "a ring used by another team than its own";
    TOKEN_BRANCH = 606, "a slot that only some paths give back";
    TOKEN_ORDER = 607, "slots given back in another order than taken";
    RING_TRIPS = 608, "producer and consumer that run different numbers of steps";
    RING_SLOTS = 609, "a ring with too few slots";
    CARRY = 610, "a carried slot without its next value";
    ROLE_TEAM = 611, "roles that do not fit their teams";
    QUEUE_KEEP = 612, "more groups kept in flight than the queue holds";
    TURN_PAIRS = 613, "a turn that is not taken and passed in pairs";
    SLOT_ACCESS = 614, "a slot written by its reader or read by its writer";
    IN_FLIGHT = 615, "an accumulator touched while a product is in flight";
    SEGMENTS = 616, "ranges of one loop that do not fit together";
    PARTIAL = 617, "a partial sum that cannot be one";
    PLACE = 618, "a value or memory in a place where it cannot live";
    SCHEDULE = 619, "a schedule that cannot be";
    NOT_A_RING = 630, "something else where a ring is needed";
    NOT_A_QUEUE = 631, "something else where a queue or turn is needed";

    // 7xx run time
    READ_POISON = 701, "a read of what was never written";
    UNINITIALISED = 702, "a variable that is read before it has a value";
    OUT_OF_BOUNDS = 703, "an index outside its tensor or tile";
    NEGATIVE_START = 704, "a region that starts below 0";
    INVALID_ELEMENT = 705, "an invalid element of a tile read by index";
    PARTIAL_TILE = 706, "a tile that must be full but is not";
    RACE_THREADS = 707, "two threads that touch one element without order";
    RACE_BLOCKS = 708, "two blocks that touch one element in one launch";
    RACE_ROLES = 709, "two roles that touch one element without order";
    VECTOR_DEPENDENCE = 710, "iterations of a `vectorized` loop that depend on one another";
    NOT_COVERED = 711, "an element of an `out` tensor that is never written";
    NOT_RESTORED = 712, "a zeroed workspace that is left changed";
    INDEX_TOO_LARGE = 713, "an index that does not fit into 64 bits";
    DIVIDED_BY_ZERO = 714, "an integer division by zero";
    SHIFTED_TOO_FAR = 715, "a shift by the width of its type or more at run time";
    CONVERSION_RANGE = 716, "a conversion of a value that the type does not have";
    ASSERT_FAILED = 717, "an assertion that is false";
    DIVERGENT = 718, "a collective that only some of its threads reach";
    NOT_UNIFORM = 719, "a value that differs between threads that act together";
    INACTIVE_LANE = 720, "a shuffle from a thread that is not there";
    REDUCER_JOINED = 721, "a reducer that is updated after it was read";
    BAD_COMBINER = 722, "a combiner that breaks its own laws";
    BAD_STEP = 723, "a loop whose step is not positive";
    DEADLOCK = 724, "roles that wait for one another";
    TOKEN_MISUSE = 725, "a slot or turn used against its rules";
    TOKEN_LOST = 726, "a slot that is never given back";
    READ_IN_FLIGHT = 727, "a read of what an engine has yet to write";
    CHANGED_IN_FLIGHT = 728, "a change of what an engine in flight reads or writes";
    RELEASED_EARLY = 729, "a slot released while an engine reads it";
    NOT_AWAITED = 730, "asynchronous work that is never awaited";
    STEP_LIMIT = 731, "a program that runs too long";
    ORDER_DEPENDENT = 732, "a result that depends on an order that is free";
    NOT_VERIFIED = 733, "a program that was not checked before it ran";

    BIND_ARGUMENT = 750, "an argument that is missing, unknown or of the wrong kind";
    BIND_DTYPE = 751, "an argument of another element type";
    BIND_RANK = 752, "an argument with more or fewer axes";
    BIND_SHAPE = 753, "an extent that disagrees with the head";
    BIND_STRIDE = 754, "strides that disagree with the head";
    BIND_ALIGN = 755, "memory that is not aligned as the head demands";
    BIND_SIZE = 756, "memory that is too small for its tensor";
    BIND_OVERLAP = 757, "arguments that share memory that is written";
    BIND_CONDITION = 758, "a `where` that is false at launch";
    LAUNCH = 760, "a grid, workspace or loop of an op that has no value";
    MEMORY = 761, "memory that cannot be had";
    FAULT = 762, "a kernel that stopped";
    HOST_FEATURE = 763, "a kernel built for another processor";
    LIBRARY = 764, "a library that cannot be loaded";
    COMPILER = 765, "a machine compiler that failed";
    READ_BACK = 766, "a dump that is another program than it shows";
    PASS_MEANING = 767, "a pass that makes another program of it";

    // 8xx targets and limits
    UNKNOWN_TARGET = 801, "a target that is not known";
    TARGET_FILE = 802, "a targets file that cannot be read";
    TARGET_KEY = 803, "a key that a targets file does not have";
    TARGET_VALUE = 804, "a value of a targets file that cannot be";
    TARGET_MISSING = 805, "a value that a targets file must state";
    TARGET_INHERITS = 806, "an architecture or chip that leans on another wrongly";
    TARGET_MAP = 807, "a lane map or template that does not fit its instruction";
    TOO_MANY_THREADS = 820, "more threads than the target has";
    SHARED_LIMIT = 821, "more shared memory than the target has";
    WARP_WIDTH = 822, "a warp operation wider than the target's warp";
    SCHEDULE_BLOCKS = 823, "a persistent schedule without its number of blocks";
    UNSUPPORTED = 830, "something that this target cannot run";
    NOT_THREADED = 831, "something of the whole block where code of threads is made";

    // 9xx command line and files
    FILE_MISSING = 901, "a file that is not there";
    FILE_ACCESS = 902, "a file that cannot be read or written";
    FILE_FORMAT = 903, "a file that is not what its name says";
    FILE_UNSUPPORTED = 904, "a file of a form that is not supported";
    FILE_KEY = 905, "an array that an archive does not hold";
    INPUT_SPEC = 906, "an input that is not understood";
    COMPARE = 907, "results that cannot be compared";
    USAGE = 910, "a command line that is not understood";
    NO_SUCH_ENTRY = 911, "a kernel or op that the file does not hold";
    PARAM_VALUE = 912, "a value given to a parameter that it cannot take";
    TARGET_ABSENT = 913, "a target that this build or machine cannot run";
}

/// The row of a code, if the code names a rule.
pub fn row(code: Code) -> Option<&'static Row> {
    TABLE.iter().find(|r| r.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_ascend_and_titles_are_plain() {
        assert!(TABLE.windows(2).all(|w| w[0].code < w[1].code), "rows must ascend and be unique");
        for row in TABLE {
            assert!(!row.title.is_empty() && !row.title.ends_with('.'), "{}", row.name);
        }
    }
}
