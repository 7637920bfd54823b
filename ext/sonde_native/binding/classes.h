/* classes: the Ruby classes of the engine, one file each. All functions: GVL. */
#ifndef SONDE_BINDING_CLASSES_H
#define SONDE_BINDING_CLASSES_H

#include <ruby.h>

#include "../core/profile.h"

/* Each defines its class or methods below Sonde::Native. */
void sn_define_module(VALUE native);
void sn_define_labels(VALUE native);
void sn_define_window(VALUE native);
void sn_define_profile(VALUE native);
#ifdef SONDE_TESTING
void sn_define_testing(VALUE native);
#endif

/* A Sonde::Native::Profile that owns the profile. Raises NoMemoryError; then it is still the caller's. */
VALUE sn_profile_object(sn_profile *profile);

#endif
