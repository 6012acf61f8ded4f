import type { StandardSchemaV1 } from '@standard-schema/spec';
import { isSchema, type Schema } from '../db/values/standard-schema.ts';

/** A domain event: its name and the schema of its data. */
export interface DomainEvent<Data = unknown> {
  readonly isDomainEvent: true;
  readonly name: string;
  readonly schema: Schema;
  /** Types only. */
  readonly $data?: Data;
}

const NAME = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/;
const NAME_LENGTH_MAX = 60;

/**
 * `const OrderPaid = domainEvent('order.paid', schema)`.
 *
 * @example
 * ```ts
 * export const OrderPaid = domainEvent('order.paid', z.object({ id: z.uuid() }));
 * ```
 */
export function domainEvent<S extends Schema>(name: string, schema: S): DomainEvent<StandardSchemaV1.InferInput<S>> {
  if (typeof name !== 'string' || name.length > NAME_LENGTH_MAX || !NAME.test(name))
    throw new TypeError(
      `domainEvent(${JSON.stringify(name)}): use at most ${NAME_LENGTH_MAX} letters, digits, "_" and "-" with dots between.`,
    );
  if (!isSchema(schema)) throw new TypeError(`domainEvent("${name}"): the second argument is a schema.`);
  return Object.freeze({ isDomainEvent: true, name, schema });
}

export function isDomainEvent(value: unknown): value is DomainEvent {
  return typeof value === 'object' && value !== null && (value as Partial<DomainEvent>).isDomainEvent === true;
}
