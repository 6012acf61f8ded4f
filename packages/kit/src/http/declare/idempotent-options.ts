import { objectOf } from '../../options/read-options.ts';
import { aFunction, either, flag, oneOf, type ValueRule, wholeNumber } from '../../options/value-rule.ts';

/** What an anonymous request is told apart by. */
export interface AnonymousRequest {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly clientAddress: string;
}

export interface IdempotentOptions {
  /** Requests without a key are refused. */
  readonly required?: boolean;
  /** `false` stores that the operation was done, never its response: for one-time secrets. Sensitive members of the schema imply it. */
  readonly keepResponse?: boolean;
  /** Tells callers without credentials apart; without it a route that admits them cannot be idempotent (E019). */
  readonly anonymous?: (request: AnonymousRequest) => string;
}

/** `true` and `'optional'` mean the same. */
export type Idempotent = boolean | 'optional' | 'required' | IdempotentOptions;

export const idempotentRule: ValueRule = either(
  "true, 'optional', 'required' or { required, keepResponse, anonymous }",
  flag,
  oneOf('optional', 'required'),
  objectOf<IdempotentOptions>({ required: flag, keepResponse: flag, anonymous: aFunction }),
);

/** How the transaction around an atomic route is opened. */
export interface AtomicOptions {
  /** The isolation level on PostgreSQL. SQLite transactions are always serializable. */
  readonly isolation?: 'read committed' | 'repeatable read' | 'serializable';
  /** How often the handler runs again after a serialization failure or deadlock. */
  readonly retries?: number;
}

export const atomicRule: ValueRule = either(
  'true, or { isolation, retries }',
  flag,
  objectOf<AtomicOptions>({ isolation: oneOf('read committed', 'repeatable read', 'serializable'), retries: wholeNumber(0, 100) }),
);

/** The option, complete. */
export interface IdempotencyPlan {
  readonly isRequired: boolean;
  readonly keepsResponse: boolean;
  readonly anonymous: IdempotentOptions['anonymous'];
}

export function idempotencyPlan(given: Idempotent | undefined, hasSensitive: boolean): IdempotencyPlan | undefined {
  if (given === undefined || given === false) return undefined;
  const { required = given === 'required', keepResponse = true, anonymous } = typeof given === 'object' ? given : {};
  return { isRequired: required, keepsResponse: keepResponse && !hasSensitive, anonymous };
}
