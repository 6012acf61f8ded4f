import { chosenRange } from '../../app/admin/range.ts';
import type { AdminRange } from '../../app/admin/shapes.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { isMoment } from './read-list-query.ts';

export const RangeQuery = jsonSchema<{ range?: string }>({
  type: 'object',
  properties: { range: { type: 'string', maxLength: 80 } },
  additionalProperties: false,
});

const USUAL: ReadonlySet<string> = new Set(['1h', '24h', '7d', '30d']);

const FAULT = {
  location: ['query', 'range'],
  code: 'invalid',
  message: 'Give 1h, 24h, 7d, 30d, or two times as in 2026-01-31T12:00:00Z/2026-01-31T18:00:00Z, 10 seconds to 400 days apart.',
};

/** Undefined when the query has none; anything that is not a range of time is a 422. */
export function readRange({ range }: { readonly range?: string }): AdminRange | undefined {
  if (range === undefined || USUAL.has(range)) return range as AdminRange | undefined;
  if (!range.split('/').every(isMoment) || chosenRange(range) === null) throw coreErrors.validation_error({ errors: [FAULT] });
  return range as AdminRange;
}
