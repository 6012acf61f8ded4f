import { createLocalJWKSet, errors, type CryptoKey, type FlattenedJWSInput, type JSONWebKeySet, type JWSHeaderParameters } from 'jose';
import { coreErrors } from '../../errors/core-errors.ts';
import { ProviderFault } from './read-keys.ts';

/** A token with an unknown `kid` makes us ask the provider at most this often, whether the provider responds or not. */
export const RETRY_MS = 30_000;
/** While no keys were ever read, nobody can log in: asked more often. */
export const FIRST_RETRY_MS = 5000;

export interface IssuerKeysOptions {
  readonly read: () => Promise<JSONWebKeySet>;
  readonly refreshMs: number;
  readonly now: () => number;
  /** Told of every attempt: null after a success. */
  readonly onAttempt: (fault: Error | null) => void;
}

/**
 * The public keys of one issuer. `createRemoteJWKSet` of jose refuses known keys once its cache is too old and the provider is down, and asks
 * a provider that is down again for each unknown `kid`. Here:
 *
 * - Keys older than `refreshMs` are read again in the background; twice as old, the request waits for that, so that a process without
 *   requests does not accept a key that was withdrawn hours ago.
 * - A known key stays good while the provider is down. A key that the provider no longer lists ends with the next successful read.
 * - Requests that need a read share it.
 */
export class IssuerKeys {
  readonly #options: IssuerKeysOptions;
  #find: ReturnType<typeof createLocalJWKSet> | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #triedAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  #fault: Error | null = null;

  constructor(options: IssuerKeysOptions) {
    this.#options = options;
  }

  /** For `jwtVerify`. */
  readonly find = async (header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey> => {
    await this.refreshed();
    if (this.#find === undefined) throw coreErrors.unavailable({ detail: 'The identity provider cannot be reached. Try again later.' });
    try {
      return await this.#find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || !this.#mayTry()) throw error;
      await this.#read();
      return this.#find(header, token);
    }
  };

  /** Reads the keys if they are due; waits only where the keys at hand must not be used. Never throws. */
  refreshed(): Promise<void> | undefined {
    const age = this.#options.now() - this.#readAt;
    if (age >= 0 && age < this.#options.refreshMs) return undefined;
    const reading = this.#mayTry() ? this.#read() : undefined;
    return this.#find === undefined || age >= 2 * this.#options.refreshMs || age < 0 ? reading : undefined;
  }

  get hasKeys(): boolean {
    return this.#find !== undefined;
  }

  /** Of the last attempt; null when it succeeded. */
  get fault(): Error | null {
    return this.#fault;
  }

  /** Null while no keys were read. */
  get ageMs(): number | null {
    return this.#find === undefined ? null : Math.max(0, this.#options.now() - this.#readAt);
  }

  /** A read that is under way can be joined. A clock that was set back does not stop us from trying. */
  #mayTry(): boolean {
    if (this.#reading !== undefined) return true;
    const since = this.#options.now() - this.#triedAt;
    return since < 0 || since >= (this.#find === undefined ? FIRST_RETRY_MS : RETRY_MS);
  }

  #read(): Promise<void> {
    if (this.#reading !== undefined) return this.#reading;
    this.#triedAt = this.#options.now();
    const { read, onAttempt } = this.#options;
    this.#reading = this.#attempt(read).finally(() => {
      this.#reading = undefined;
      onAttempt(this.#fault);
    });
    return this.#reading;
  }

  async #attempt(read: IssuerKeysOptions['read']): Promise<void> {
    try {
      this.#find = createLocalJWKSet(await read());
      this.#readAt = this.#options.now();
      this.#fault = null;
    } catch (error) {
      this.#fault = error instanceof Error ? error : new ProviderFault(String(error));
    }
  }
}
