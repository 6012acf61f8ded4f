import { isDeepStrictEqual } from 'node:util';
import { parseKeyPath, valueAt, type Document } from './document.ts';
import { RemoteSourceError } from './errors.ts';

export type ChangeListener = (value: unknown, previous: unknown) => void;

interface Registration {
  readonly keys: readonly string[];
  readonly listener: ChangeListener;
}

/** Listeners for single key paths of a document. */
export class ChangeListeners {
  readonly #registrations = new Set<Registration>();

  /** Returns the function that removes the listener. */
  add(path: string | readonly string[], listener: ChangeListener): () => void {
    if (typeof listener !== 'function') throw new RemoteSourceError('option', 'on: the listener must be a function');
    const registration = { keys: parseKeyPath(path), listener };
    this.#registrations.add(registration);
    return () => void this.#registrations.delete(registration);
  }

  /** Calls the listeners whose value is another one. A listener that throws does not keep the others from being called. */
  notify(before: Document | undefined, after: Document): unknown[] {
    const errors: unknown[] = [];
    // A listener that is added by a listener is called from the next change on: it could otherwise add itself endlessly.
    const registrations = Array.from(this.#registrations);
    for (const registration of registrations) {
      const { keys, listener } = registration;
      // Removed by a listener before it.
      if (!this.#registrations.has(registration)) continue;
      const [previous, value] = [before && valueAt(before, keys), valueAt(after, keys)];
      try {
        // It may throw for a value that nests too deep to be compared.
        if (!isDeepStrictEqual(previous, value)) listener(value, previous);
      } catch (error) {
        errors.push(error);
      }
    }
    return errors;
  }
}
