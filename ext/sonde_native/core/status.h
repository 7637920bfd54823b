/* status: the one enum of results, and its text. Contexts: any. */
#ifndef SONDE_CORE_STATUS_H
#define SONDE_CORE_STATUS_H

typedef enum sn_status {
  SN_OK = 0,
  SN_FULL,      /* a configured limit was reached; the structure stays usable and unchanged */
  SN_NO_MEMORY, /* the C library has no memory; the structure stays usable and unchanged */
  SN_MALFORMED, /* input from outside is not what its format demands */
  SN_TOO_LARGE, /* input from outside is larger than the reader's bound */
  SN_MISMATCH,  /* two profiles cannot be combined (other period type, no common sample type) */
  SN_INVALID    /* an argument is out of range: a bug in the caller */
} sn_status;

/* A static text, never NULL. */
const char *sn_status_text(sn_status status);

#endif
