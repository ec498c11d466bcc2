"""No circle of modules in any crate."""
import tempfile
import unittest
from pathlib import Path

from circles import CRATES, ROOT, circles


class Circles(unittest.TestCase):
    def test_no_module_uses_itself_by_others(self):
        for crate in CRATES:
            with self.subTest(crate.relative_to(ROOT)):
                self.assertEqual(list(circles(crate)), [])

    def test_a_circle_is_found(self):
        files = {
            "lib.rs": "mod a;\nmod b;\nmod c;\nmod d;\n",
            "a.rs": "use crate::b::B;\n",
            "b.rs": "mod e;\npub use e::E;\npub struct B;\n",
            "b/e.rs": "pub struct E(super::super::c::C);\n",
            "c.rs": "// use crate::d::D;\npub struct C;\nfn f() { crate::a::g(\"crate::d\") }\n",
            "d.rs": "use crate::a;\n#[cfg(test)]\nmod tests {\n    use crate::d::D;\n}\n",
        }
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = Path(folder, "src", name)
                path.parent.mkdir(exist_ok=True, parents=True)
                path.write_text(text)
            [(level, circle, why)] = circles(Path(folder))
        self.assertEqual((level, circle), ("crate", ["a", "b", "c"]))
        self.assertEqual(why, ["a uses b", "b::e uses c", "c uses a"])


if __name__ == "__main__":
    unittest.main()
