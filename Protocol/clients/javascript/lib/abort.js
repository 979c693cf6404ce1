/** What to do when each signal is aborted. A signal has one listener here, however many calls share it. */
const acts = new WeakMap();

/** Calls `act` when the signal is aborted. Returns a function that calls that off. */
export function onAbort(signal, act) {
  let waiting = acts.get(signal);
  if (waiting === undefined) {
    waiting = new Set();
    acts.set(signal, waiting);
    signal.addEventListener("abort", () => waiting.forEach((act) => act()), { once: true });
  }
  waiting.add(act);
  return () => waiting.delete(act);
}

/** Settles like the promise, or rejects with the reason of the signal if that comes first. */
export function abortable(promise, signal) {
  if (!signal) return promise;
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const callOff = onAbort(signal, () => reject(signal.reason));
    promise.then(resolve, reject).finally(callOff);
  });
}
