// The functions of libnats that a group uses, found with dlopen when a daemon joins one. Neither building nor running a daemon
// without a group needs the library. No function takes a structure of libnats, so its headers are not needed either.
#ifndef CNATS_H
#define CNATS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// A connection that libnats reconnects on its own, with its subscriptions. Opaque.
typedef struct cnats_connection cnats_connection;
/// A message that was received. Opaque.
typedef struct cnats_message cnats_message;

/// What a connection needs. Texts may be NULL.
struct cnats_settings {
  const char *const *servers;
  int server_count;
  const char *name;
  const char *user;
  const char *password;
  const char *token;
  /// A file with a JWT and a seed, as `nsc` writes it.
  const char *credentials;
  const char *authority;
  const char *certificate;
  const char *key;
  bool is_secure;
  /// The subject that is subscribed to.
  const char *inbox;
};

/// What happened to a connection, in the order of `event`.
enum {
  /// Connected again. The result of cnats_connect tells of the first connection.
  CNATS_CONNECTED = 1,
  CNATS_DISCONNECTED = 2,
  /// The connection is over, for example because the credentials are wrong.
  CNATS_CLOSED = 3,
  CNATS_ERROR = 4,
};

/// Called by threads of libnats. `message` must be destroyed.
struct cnats_handlers {
  void *context;
  /// `subject` is that of the subscription; that of the message may be another one. It is valid during the call.
  void (*received)(void *context, const char *subject, cnats_message *message);
  /// `reason` is valid during the call.
  void (*changed)(void *context, int event, const char *reason);
};

/// Loads libnats. Returns NULL, or why it cannot be loaded: a text that stays valid. Not to be called by two threads at once.
const char *cnats_load(void);

/// Connects; later, libnats reconnects by itself. Returns NULL on failure, with the reason, and in `is_refused` whether the
/// settings are wrong or a server refused them, so that trying again is no use.
cnats_connection *cnats_connect(
  const struct cnats_settings *settings, struct cnats_handlers handlers, char *reason, size_t room, bool *is_refused);

/// Whether a server is connected now.
bool cnats_is_connected(cnats_connection *connection);
/// The maximum bytes of a message that the server takes; 0 if none was connected.
int64_t cnats_max_payload(cnats_connection *connection);
/// Writes the URL of the connected server, without credentials; an empty text if there is none.
void cnats_url(cnats_connection *connection, char *url, size_t room);

/// Sends a message. `reply` and `identity`, the header Nats-Msg-Id, may be NULL. May wait for the socket for a second.
/// Returns NULL, or why the message was not sent.
const char *cnats_publish(
  cnats_connection *connection, const char *subject, const char *reply, const char *identity,
  const void *bytes, size_t count);

/// Subscribes to one more subject, in place of the one of the call before. JetStream delivers only to the exact subject of a
/// subscription. Returns NULL, or the reason of a failure.
const char *cnats_follow(cnats_connection *connection, const char *subject);

/// Closes the connection and waits until no handler runs. The connection is freed.
void cnats_close(cnats_connection *connection);

const char *cnats_message_subject(const cnats_message *message);
/// NULL if the message has no reply subject.
const char *cnats_message_reply(const cnats_message *message);
const char *cnats_message_bytes(const cnats_message *message);
size_t cnats_message_count(const cnats_message *message);
/// The value of a header; NULL if there is none. Valid while the message exists.
const char *cnats_message_header(cnats_message *message, const char *name);
void cnats_message_destroy(cnats_message *message);

#endif
