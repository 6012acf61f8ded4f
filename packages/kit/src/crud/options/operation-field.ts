import type { AnyCrudOptions } from './crud-options.ts';

type Given = Pick<AnyCrudOptions, 'operations'>;

/** The route field of an operation: `read` with `operations: { retrieve: { field: 'read' } }`. */
export function fieldOf({ operations }: Given, operation: string): string {
  const given = operations?.[operation];
  return typeof given === 'object' ? (given.field ?? operation) : operation;
}

/** The operation of a route field. */
export function operationOf(options: Given, field: string): string {
  return Object.keys(options.operations ?? {}).find((operation) => fieldOf(options, operation) === field) ?? field;
}
