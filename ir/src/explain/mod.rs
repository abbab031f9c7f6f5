//! A page for each rule: what it wants and why, with a wrong and a right example.
//!
//! `pantile explain P0301` prints them. Examples marked `tile wrong` raise exactly their page's code before anything
//! runs, those marked `tile right` raise nothing; tests hold them to it.

use crate::diag::Code;

macro_rules! pages {
    ($($number:literal)*) => {
        /// All pages in ascending order of their codes.
        pub const PAGES: &[(Code, &str)] =
            &[$((Code($number), include_str!(concat!("pages/P0", stringify!($number), ".md")))),*];
    };
}

#[rustfmt::skip]
pages! {
    101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116 117 118 119 201 202 203 204 205 206 207
    208 209 210 211 212 213 214 215 216 217 218 219 220 221 222 223 224 225 226 227 228 229 230 231 232 233
    234 235 236 237 238 239 240 241 242 243 244 245 246 247 248 249 250 251 252 291 292 293 294 295 296 297 298
    299 301 302 303 304 305 306 307 308 309 310 311 312 313 314 315 316 317 318 319 320 321 322 323 324 325
    326 327 328 329 330 331 401 402 403 404 405 406 407 408 409 410 411 412 413 414 415 416 417 418 419 420
    421 430 431 432 433 434 435 436 501 502 503 504 505 506 507 508 509 510 511 512 513 514 530 531 601 602 603 604
    605 606 607 608 609 610 611 612 613 614 615 616 617 618 619 630 631 701 702 703 704 705 706 707 708 709 710 711 712 713
    714 715 716 717 718 719 720 721 722 723 724 725 726 727 728 729 730 731 732 733 750 751 752 753 754 755
    756 757 758 760 761 762 763 764 765 766 767 801 802 803 804 805 806 807 820 821 822 823 830 831 901 902 903 904 905 906
    907 910 911 912 913
}

/// The page of a rule, as Markdown.
pub fn page(code: Code) -> Option<&'static str> {
    PAGES.binary_search_by_key(&code, |&(c, _)| c).ok().map(|at| PAGES[at].1)
}
