/* raise: from a status or a reason to a Ruby exception; argument checks that name what is wrong. GVL. */
#ifndef SONDE_BINDING_RAISE_H
#define SONDE_BINDING_RAISE_H

#include <ruby.h>

#include "../core/status.h"

extern VALUE sn_error_class;        /* Sonde::Error */
extern VALUE sn_format_error_class; /* Sonde::FormatError */

void sn_raise_init(void);

/* Raises unless the status is SN_OK: NoMemoryError, Sonde::FormatError or Sonde::Error. */
void sn_check(sn_status status, const char *doing);

/* TypeErrors and ArgumentErrors that say the expression, what was expected, and where in Sonde's source. */
#define SN_EXPECT_TYPE(value, type) sn_expect_type((value), (type), #value, #type, __FILE__, __LINE__, __func__)
void sn_expect_type(VALUE value, int type, const char *expression, const char *expected, const char *file, int line,
                    const char *function);

#define SN_EXPECT(condition, value, expected) \
  ((condition) ? (void)0 : sn_raise_argument((value), #value, expected, __FILE__, __LINE__, __func__))
NORETURN(void sn_raise_argument(VALUE value, const char *expression, const char *expected, const char *file, int line,
                                const char *function));

#endif
