import { expect, test } from 'vitest';
import { TicketController, ticketModule } from '../../../test/crud/live.ts';
import { wholeDocument } from '../../../test/whole-document.ts';
import { createApp } from '../../app/assemble/create-app.ts';
import { diffDocuments } from '../../openapi/diff/diff-documents.ts';
import { openApiDocument } from '../../openapi/document.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- a document of any shape
type Json = any;

test('a live list documents its events beside its page; removing them, or a part of them, is breaking', () => {
  const { routes } = createApp({
    database: 'sqlite::memory:',
    tenant: () => 'north',
    modules: [ticketModule],
    mount: { '/v1': { '/tickets': TicketController } },
  });
  const documentOf = (spec: '3.1' | '3.2'): Json => openApiDocument(routes, { title: 'Tickets', version: '1', spec });
  const operationOf = (document: Json, method: string): Json => {
    const whole: Json = wholeDocument(document);
    return whole.paths['/v1/tickets'][method];
  };
  const contentOf = (document: Json, method: string): Json => operationOf(document, method).responses[200].content;
  const change = { type: 'string', contentMediaType: 'application/json', contentSchema: { $ref: '#/components/schemas/TicketChange' } };
  const served = documentOf('3.1');
  expect(contentOf(served, 'get')).toMatchObject({
    'application/json': { schema: { $ref: '#/components/schemas/TicketPage' } },
    'text/event-stream': {
      schema: { type: 'string' },
      'x-item-schema': { properties: { event: { enum: ['upsert', 'remove', 'reset', 'ready', 'error'] }, data: change } },
    },
  });
  for (const method of ['get', 'query'])
    expect(contentOf(documentOf('3.2'), method)['text/event-stream'].itemSchema.properties.data).toEqual(change);
  expect(served.components.schemas.TicketChange).toMatchObject({
    properties: { key: { type: 'string', format: 'uuid' }, item: { $ref: '#/components/schemas/Ticket' } },
  });
  expect(operationOf(served, 'get').parameters).toContainEqual(expect.objectContaining({ in: 'header', name: 'Last-Event-ID' }));

  const plain = structuredClone(served);
  const responses: Json[] = [plain.paths['/v1/tickets'].get.responses[200], ...Object.values<Json>(plain.components.responses ?? {})];
  for (const { content } of responses) if (content !== undefined) delete content['text/event-stream'];
  expect(diffDocuments(served, plain)).toContainEqual(expect.objectContaining({ id: 'output-media-type-removed' }));
  const narrower = structuredClone(served);
  delete narrower.components.schemas.TicketChange.properties.item;
  expect(diffDocuments(served, narrower)).toContainEqual(expect.objectContaining({ id: 'output-property-removed' }));
});
