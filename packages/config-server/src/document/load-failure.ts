export type FailureKind = 'io' | 'parse' | 'missing' | 'env' | 'schema' | 'git' | 'decrypt' | 'reference';

/**
 * Why a document could not be loaded. `origin` says where (`file …`, `env …`, `schema …`, `git …`); the message names keys, lines and
 * remedies and never quotes a value: parser messages quote source text, so they are never passed through.
 */
export class LoadFailure extends Error {
  readonly kind: FailureKind;
  readonly origin: string;
  /** The key path of a value that does not decrypt, or of a reference that fails, where there is one. */
  readonly key: string | undefined;

  constructor(kind: FailureKind, origin: string, message: string, key?: string) {
    super(message);
    this.name = 'LoadFailure';
    this.kind = kind;
    this.origin = origin;
    this.key = key;
  }
}
