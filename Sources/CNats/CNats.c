#include "include/CNats.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The types of libnats that its functions take: pointers to opaque structures, and int for its enumerations.
typedef struct natsConnection natsConnection;
typedef struct natsSubscription natsSubscription;
typedef struct natsOptions natsOptions;
typedef struct natsMsg natsMsg;
typedef void (*message_handler)(natsConnection *, natsSubscription *, natsMsg *, void *);
typedef void (*connection_handler)(natsConnection *, void *);
typedef void (*error_handler)(natsConnection *, natsSubscription *, int, void *);

// The values of natsStatus and natsConnStatus that decide something here.
enum {
  STATUS_OK = 0,
  STATUS_PROTOCOL_ERROR = 2,
  STATUS_IO_ERROR = 3,
  STATUS_CLOSED = 5,
  STATUS_NO_SERVER = 6,
  STATUS_STALE_CONNECTION = 7,
  STATUS_DISCONNECTED = 10,
  STATUS_REFUSED = 11,
  STATUS_TIMEOUT = 26,
  CONNECTION_CONNECTED = 2,
};

// Every function: its type and its name without the prefix that all have.
#define FUNCTIONS(X) \
  X(int, natsOptions_Create, (natsOptions **)) \
  X(int, natsOptions_SetServers, (natsOptions *, const char **, int)) \
  X(int, natsOptions_SetName, (natsOptions *, const char *)) \
  X(int, natsOptions_SetUserInfo, (natsOptions *, const char *, const char *)) \
  X(int, natsOptions_SetToken, (natsOptions *, const char *)) \
  X(int, natsOptions_SetSecure, (natsOptions *, bool)) \
  X(int, natsOptions_LoadCATrustedCertificates, (natsOptions *, const char *)) \
  X(int, natsOptions_LoadCertificatesChain, (natsOptions *, const char *, const char *)) \
  X(int, natsOptions_SetUserCredentialsFromFiles, (natsOptions *, const char *, const char *)) \
  X(int, natsOptions_SetTimeout, (natsOptions *, int64_t)) \
  X(int, natsOptions_SetMaxReconnect, (natsOptions *, int)) \
  X(int, natsOptions_SetReconnectWait, (natsOptions *, int64_t)) \
  X(int, natsOptions_SetReconnectJitter, (natsOptions *, int64_t, int64_t)) \
  X(int, natsOptions_SetReconnectBufSize, (natsOptions *, int)) \
  X(int, natsOptions_SetDisconnectedCB, (natsOptions *, connection_handler, void *)) \
  X(int, natsOptions_SetReconnectedCB, (natsOptions *, connection_handler, void *)) \
  X(int, natsOptions_SetClosedCB, (natsOptions *, connection_handler, void *)) \
  X(int, natsOptions_SetErrorHandler, (natsOptions *, error_handler, void *)) \
  X(int, natsOptions_SetSendAsap, (natsOptions *, bool)) \
  X(int, natsOptions_SetPingInterval, (natsOptions *, int64_t)) \
  X(int, natsOptions_SetMaxPingsOut, (natsOptions *, int)) \
  X(int, natsOptions_SetWriteDeadline, (natsOptions *, int64_t)) \
  X(void, natsOptions_Destroy, (natsOptions *)) \
  X(int, natsConnection_Connect, (natsConnection **, natsOptions *)) \
  X(int, natsConnection_Status, (natsConnection *)) \
  X(int64_t, natsConnection_GetMaxPayload, (natsConnection *)) \
  X(int, natsConnection_GetConnectedUrl, (natsConnection *, char *, size_t)) \
  X(int, natsConnection_GetLastError, (natsConnection *, const char **)) \
  X(int, natsConnection_PublishMsg, (natsConnection *, natsMsg *)) \
  X(int, natsConnection_Subscribe, (natsSubscription **, natsConnection *, const char *, message_handler, void *)) \
  X(int, natsSubscription_SetPendingLimits, (natsSubscription *, int, int)) \
  X(void, natsSubscription_Destroy, (natsSubscription *)) \
  X(const char *, natsSubscription_GetSubject, (natsSubscription *)) \
  X(void, natsConnection_Close, (natsConnection *)) \
  X(void, natsConnection_Destroy, (natsConnection *)) \
  X(int, natsMsg_Create, (natsMsg **, const char *, const char *, const char *, int)) \
  X(int, natsMsgHeader_Set, (natsMsg *, const char *, const char *)) \
  X(int, natsMsgHeader_Get, (natsMsg *, const char *, const char **)) \
  X(const char *, natsMsg_GetSubject, (const natsMsg *)) \
  X(const char *, natsMsg_GetReply, (const natsMsg *)) \
  X(const char *, natsMsg_GetData, (const natsMsg *)) \
  X(int, natsMsg_GetDataLength, (const natsMsg *)) \
  X(void, natsMsg_Destroy, (natsMsg *)) \
  X(const char *, natsStatus_GetText, (int)) \
  X(const char *, nats_GetLastError, (int *))

static struct {
#define DECLARE(result, name, arguments) result(*name) arguments;
  FUNCTIONS(DECLARE)
#undef DECLARE
} nats;

static bool is_loaded;

const char *cnats_load(void) {
  static char reason[256];
  if (is_loaded) return NULL;
  // Debian names each series, from 3.4 on, which is the first with JetStream; the others are names of a library built by hand.
  enum { FIRST = 4, LAST = 30 };
  void *library = NULL;
  for (int minor = FIRST; minor <= LAST && !library; minor++) {
    char name[32];
    snprintf(name, sizeof name, "libnats.so.3.%d", minor);
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  static const char *const names[] = {"libnats.so.3", "libnats.so", NULL};
  for (int place = 0; names[place] && !library; place++) library = dlopen(names[place], RTLD_NOW | RTLD_LOCAL);
  if (!library) return "libnats is not installed";
#define FIND(result, name, arguments) \
  *(void **)&nats.name = dlsym(library, #name); \
  if (!nats.name) { \
    snprintf(reason, sizeof reason, "libnats has no function %s", #name); \
    return reason; \
  }
  FUNCTIONS(FIND)
#undef FIND
  is_loaded = true;
  return NULL;
}

struct cnats_connection {
  natsConnection *connection;
  natsSubscription *inbox;
  natsSubscription *followed;
  struct cnats_handlers handlers;
};

static void did_receive(natsConnection *connection, natsSubscription *subscription, natsMsg *message, void *context) {
  (void)connection;
  cnats_connection *self = context;
  const char *subject = nats.natsSubscription_GetSubject(subscription);
  self->handlers.received(self->handlers.context, subject ? subject : "", (cnats_message *)message);
}

// The text of an error without the place in the library's source, such as "(conn.c:2088): ", that it may begin with.
static const char *without_place(const char *text) {
  const char *end = text[0] == '(' ? strstr(text, "): ") : NULL;
  return end ? end + 3 : text;
}

static void report(cnats_connection *self, natsConnection *connection, int event) {
  const char *reason = NULL;
  if (connection) nats.natsConnection_GetLastError(connection, &reason);
  self->handlers.changed(self->handlers.context, event, reason ? without_place(reason) : "");
}

static void did_connect(natsConnection *connection, void *context) { report(context, connection, CNATS_CONNECTED); }
static void did_disconnect(natsConnection *connection, void *context) {
  report(context, connection, CNATS_DISCONNECTED);
}
static void did_close(natsConnection *connection, void *context) { report(context, connection, CNATS_CLOSED); }

static void did_fail(natsConnection *connection, natsSubscription *subscription, int status, void *context) {
  (void)subscription, (void)connection;
  cnats_connection *self = context;
  const char *text = nats.natsStatus_GetText(status);
  self->handlers.changed(self->handlers.context, CNATS_ERROR, text ? text : "");
}

static int set(natsOptions *options, const struct cnats_settings *settings, cnats_connection *self) {
  // Requests that were sent before a disconnection are sent again by the caller.
  enum { ALWAYS = -1, PAUSE = 250, JITTER = 100, PATIENCE = 1000, BUFFER = 1 << 20 };
  int status = nats.natsOptions_SetServers(options, (const char **)settings->servers, settings->server_count);
#define TRY(call) \
  if (status == STATUS_OK) status = (call)
  TRY(nats.natsOptions_SetName(options, settings->name));
  if (settings->user) TRY(nats.natsOptions_SetUserInfo(options, settings->user, settings->password));
  if (settings->token) TRY(nats.natsOptions_SetToken(options, settings->token));
  if (settings->credentials)
    TRY(nats.natsOptions_SetUserCredentialsFromFiles(options, settings->credentials, NULL));
  if (settings->is_secure) TRY(nats.natsOptions_SetSecure(options, true));
  if (settings->authority) TRY(nats.natsOptions_LoadCATrustedCertificates(options, settings->authority));
  if (settings->certificate)
    TRY(nats.natsOptions_LoadCertificatesChain(options, settings->certificate, settings->key));
  TRY(nats.natsOptions_SetTimeout(options, PATIENCE));
  TRY(nats.natsOptions_SetMaxReconnect(options, ALWAYS));
  TRY(nats.natsOptions_SetReconnectWait(options, PAUSE));
  TRY(nats.natsOptions_SetReconnectJitter(options, JITTER, JITTER));
  TRY(nats.natsOptions_SetReconnectBufSize(options, BUFFER));
  TRY(nats.natsOptions_SetDisconnectedCB(options, did_disconnect, self));
  TRY(nats.natsOptions_SetReconnectedCB(options, did_connect, self));
  TRY(nats.natsOptions_SetClosedCB(options, did_close, self));
  TRY(nats.natsOptions_SetErrorHandler(options, did_fail, self));
  TRY(nats.natsOptions_SetSendAsap(options, true));
  TRY(nats.natsOptions_SetPingInterval(options, 2 * PATIENCE));
  TRY(nats.natsOptions_SetMaxPingsOut(options, 2));
  TRY(nats.natsOptions_SetWriteDeadline(options, PATIENCE));
#undef TRY
  return status;
}

cnats_connection *cnats_connect(
  const struct cnats_settings *settings, struct cnats_handlers handlers, char *reason, size_t room,
  bool *is_refused) {
  cnats_connection *self = calloc(1, sizeof *self);
  natsOptions *options = NULL;
  reason[0] = 0;
  *is_refused = true;
  if (!self) return NULL;
  self->handlers = handlers;
  int status = nats.natsOptions_Create(&options);
  if (status == STATUS_OK) status = set(options, settings, self);
  if (status == STATUS_OK) status = nats.natsConnection_Connect(&self->connection, options);
  // libnats 3.4 signs about one nonce in 256 wrongly. Wrong credentials are refused with any nonce.
  for (int tries = 0; status == STATUS_REFUSED && settings->credentials && tries < 2; tries++)
    status = nats.natsConnection_Connect(&self->connection, options);
  // A server that ends, or a proxy without one, closes the connection without a word. libnats 3.4 takes an answer that comes after its
  // timeout for a wrong one.
  *is_refused = status != STATUS_PROTOCOL_ERROR && status != STATUS_IO_ERROR && status != STATUS_CLOSED &&
                status != STATUS_NO_SERVER && status != STATUS_STALE_CONNECTION && status != STATUS_DISCONNECTED &&
                status != STATUS_TIMEOUT;
  if (status == STATUS_OK)
    status = nats.natsConnection_Subscribe(&self->inbox, self->connection, settings->inbox, did_receive, self);
  // What arrives is bounded by the flow control of the stream's consumer.
  if (status == STATUS_OK) status = nats.natsSubscription_SetPendingLimits(self->inbox, -1, -1);
  if (options) nats.natsOptions_Destroy(options);
  if (status != STATUS_OK) {
    const char *detail = nats.nats_GetLastError(NULL);
    snprintf(reason, room, "%s", detail && detail[0] ? without_place(detail) : nats.natsStatus_GetText(status));
    cnats_close(self);
    return NULL;
  }
  return self;
}

bool cnats_is_connected(cnats_connection *self) {
  return nats.natsConnection_Status(self->connection) == CONNECTION_CONNECTED;
}

int64_t cnats_max_payload(cnats_connection *self) { return nats.natsConnection_GetMaxPayload(self->connection); }

void cnats_url(cnats_connection *self, char *url, size_t room) {
  url[0] = 0;
  if (nats.natsConnection_GetConnectedUrl(self->connection, url, room) != STATUS_OK) url[0] = 0;
  char *at = strrchr(url, '@');
  if (at) memmove(url, at + 1, strlen(at + 1) + 1);
}

const char *cnats_publish(
  cnats_connection *self, const char *subject, const char *reply, const char *identity,
  const void *bytes, size_t count) {
  natsMsg *message = NULL;
  int status = nats.natsMsg_Create(&message, subject, reply, bytes, (int)count);
  if (status == STATUS_OK && identity) status = nats.natsMsgHeader_Set(message, "Nats-Msg-Id", identity);
  if (status == STATUS_OK) status = nats.natsConnection_PublishMsg(self->connection, message);
  if (message) nats.natsMsg_Destroy(message);
  return status == STATUS_OK ? NULL : nats.natsStatus_GetText(status);
}

const char *cnats_follow(cnats_connection *self, const char *subject) {
  if (self->followed) nats.natsSubscription_Destroy(self->followed);
  self->followed = NULL;
  int status = nats.natsConnection_Subscribe(&self->followed, self->connection, subject, did_receive, self);
  if (status == STATUS_OK) status = nats.natsSubscription_SetPendingLimits(self->followed, -1, -1);
  return status == STATUS_OK ? NULL : nats.natsStatus_GetText(status);
}

void cnats_close(cnats_connection *self) {
  if (!self) return;
  // Closing tells the handlers once more; afterwards no thread of the library uses them.
  if (self->followed) nats.natsSubscription_Destroy(self->followed);
  if (self->inbox) nats.natsSubscription_Destroy(self->inbox);
  if (self->connection) nats.natsConnection_Destroy(self->connection);
  // The handlers of a closed connection run on a thread of the library that is not waited for, so their few bytes stay.
}

const char *cnats_message_subject(const cnats_message *message) { return nats.natsMsg_GetSubject((natsMsg *)message); }
const char *cnats_message_reply(const cnats_message *message) { return nats.natsMsg_GetReply((natsMsg *)message); }
const char *cnats_message_bytes(const cnats_message *message) { return nats.natsMsg_GetData((natsMsg *)message); }
size_t cnats_message_count(const cnats_message *message) {
  return (size_t)nats.natsMsg_GetDataLength((natsMsg *)message);
}

const char *cnats_message_header(cnats_message *message, const char *name) {
  const char *value = NULL;
  return nats.natsMsgHeader_Get((natsMsg *)message, name, &value) == STATUS_OK ? value : NULL;
}

void cnats_message_destroy(cnats_message *message) { nats.natsMsg_Destroy((natsMsg *)message); }
