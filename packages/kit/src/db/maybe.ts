/** A value, or the promise of one. Few steps of a short request have to wait, and a promise costs more than most of them. */
export type Maybe<T> = T | Promise<T>;

/** Goes on with the value: at once where it is there. */
export function andThen<T, R>(value: Maybe<T>, goOn: (settled: T) => Maybe<R>): Maybe<R> {
  return value instanceof Promise ? value.then(goOn) : goOn(value);
}
