import { expect, test } from 'vitest';
import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import { describedBy } from './tool-description.ts';

test.each([
  ['order', 'create', 'Creates an order record.'],
  ['ticket', 'create', 'Creates a ticket record.'],
  ['user', 'destroy', 'Deletes a user record.'],
  ['invoice', 'approve', 'Changes the state of an invoice record: approve.'],
  ['open_item', 'transitions', 'Lists the changes of state that are possible for an open item record.'],
  ['invoice', 'remind', 'Does "remind" for an invoice record.', 'one'],
  ['invoice', 'remind', 'Does "remind" for several invoice records. Each has its own result; a dry run says what would happen.', 'many'],
])('%s, %s: %s', (resource, operation, sentence, of?: string) => {
  expect(describedBy({ metadata: { crud: { resource, operation, of } } } as unknown as CompiledRoute)).toBe(sentence);
});
