/* Its shared_ptr_base.h spells an attribute __noinline__, which CUDA makes a macro. */
#pragma push_macro("__noinline__")
#undef __noinline__
#include_next <bits/shared_ptr_base.h>
#pragma pop_macro("__noinline__")
