export type FailureKind = 'io' | 'parse' | 'missing' | 'env' | 'schema' | 'git';

/**
 * Why a document could not be loaded. `origin` says where (`file …`, `env …`, `schema …`, `git …`); the message names keys, lines and
 * remedies and never quotes a value: parser messages quote source text, so they are never passed through.
 */
export class LoadFailure extends Error {
  readonly kind: FailureKind;
  readonly origin: string;

  constructor(kind: FailureKind, origin: string, message: string) {
    super(message);
    this.name = 'LoadFailure';
    this.kind = kind;
    this.origin = origin;
  }
}
