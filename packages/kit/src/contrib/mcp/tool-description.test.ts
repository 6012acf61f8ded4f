import { expect, test } from 'vitest';
import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import { describedBy } from './tool-description.ts';

test.each([
  ['order', 'create', 'Creates an order record.'],
  ['ticket', 'create', 'Creates a ticket record.'],
  ['user', 'destroy', 'Deletes a user record.'],
  ['invoice', 'approve', 'Changes the state of an invoice record: approve.'],
  ['open_item', 'transitions', 'Lists the changes of state that are possible for an open item record.'],
])('%s, %s: %s', (resource, operation, sentence) => {
  expect(describedBy({ metadata: { crud: { resource, operation } } } as unknown as CompiledRoute)).toBe(sentence);
});
