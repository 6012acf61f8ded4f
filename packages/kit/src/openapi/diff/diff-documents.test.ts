import { afterAll, describe, expect, test } from 'vitest';
import { filter, CrudController } from '../../crud/index.ts';
import { model, t } from '../../db/index.ts';
import { jsonSchema } from '../../http/json-schema.ts';
import type { Mountable } from '../../http/controller.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { testApp, type TestApp } from '../../testing/test-app.ts';
import { openApiDocument } from '../document.ts';
import { diffDocuments, type DocumentChange } from './diff-documents.ts';
import { bumpOf, renderChanges } from './render-changes.ts';
import { type DiffRuleId, diffRules } from './rules.ts';

const idsOf = (changes: readonly DocumentChange[]) => changes.map(({ id }) => id);
const documentOf = (operation: object, schemas: object = {}) => ({
  openapi: '3.1.1',
  paths: { '/x': { post: operation } },
  components: { schemas },
});
const json = (schema: object) => ({ content: { 'application/json': { schema } } });
const body = (schema: object) => documentOf({ requestBody: json(schema) });
const answer = (schema: object) => documentOf({ responses: { 200: json(schema) } });
const object = (properties: object, required: string[] = []) => ({ type: 'object', properties, required });
const text = { type: 'string' };
const query = (name: string, more: object = {}) => ({ name, in: 'query', schema: text, ...more });

/** For each rule the two documents that differ in nothing else. A rule without a line does not compile. */
const differences: Readonly<Record<DiffRuleId, readonly [object, object]>> = {
  'operation-removed': [documentOf({}), { paths: {} }],
  'operation-added': [{ paths: {} }, documentOf({})],
  'operation-id-changed': [documentOf({ operationId: 'a' }), documentOf({ operationId: 'b' })],
  'operation-deprecated': [documentOf({}), documentOf({ deprecated: true })],
  'parameter-removed': [documentOf({ parameters: [query('a')] }), documentOf({})],
  'parameter-added': [documentOf({}), documentOf({ parameters: [query('a')] })],
  'required-parameter-added': [documentOf({}), documentOf({ parameters: [query('a', { required: true })] })],
  'parameter-became-required': [documentOf({ parameters: [query('a')] }), documentOf({ parameters: [query('a', { required: true })] })],
  'parameter-became-optional': [documentOf({ parameters: [query('a', { required: true })] }), documentOf({ parameters: [query('a')] })],
  'body-added': [documentOf({}), body(text)],
  'body-removed': [body(text), documentOf({})],
  'media-type-removed': [
    documentOf({ requestBody: { content: { 'text/csv': {}, 'application/json': {} } } }),
    documentOf({ requestBody: { content: { 'application/json': {} } } }),
  ],
  'media-type-added': [
    documentOf({ requestBody: { content: { 'application/json': {} } } }),
    documentOf({ requestBody: { content: { 'text/csv': {}, 'application/json': {} } } }),
  ],
  'response-removed': [documentOf({ responses: { 200: {}, 304: {} } }), documentOf({ responses: { 200: {} } })],
  'response-added': [documentOf({ responses: { 200: {} } }), documentOf({ responses: { 200: {}, 207: {} } })],
  'response-header-removed': [documentOf({ responses: { 200: { headers: { ETag: {} } } } }), documentOf({ responses: { 200: {} } })],
  'response-header-added': [documentOf({ responses: { 200: {} } }), documentOf({ responses: { 200: { headers: { ETag: {} } } } })],
  'error-code-removed': [documentOf({ responses: { 409: { 'x-error-codes': ['a'] } } }), documentOf({ responses: {} })],
  'error-code-added': [documentOf({ responses: {} }), documentOf({ responses: { 409: { 'x-error-codes': ['a'] } } })],
  'scope-changed': [documentOf({ 'x-scope': 'a' }), documentOf({ 'x-scope': 'b' })],
  'permission-changed': [documentOf({ 'x-permission': 'a' }), documentOf({ 'x-permission': 'b' })],
  'input-narrowed': [body({ type: ['string', 'null'] }), body(text)],
  'input-widened': [body({ type: 'string', maxLength: 5 }), body({ type: 'string', maxLength: 9 })],
  'input-property-removed': [body(object({ a: text })), body(object({}))],
  'input-property-added': [body(object({})), body(object({ a: text }))],
  'input-property-required': [body(object({ a: text })), body(object({ a: text }, ['a']))],
  'input-property-optional': [body(object({ a: text }, ['a'])), body(object({ a: text }))],
  'output-widened': [answer({ enum: ['a'] }), answer({ enum: ['a', 'b'] })],
  'output-narrowed': [answer({ enum: ['a', 'b'] }), answer({ enum: ['a'] })],
  'output-property-removed': [answer(object({ a: text })), answer(object({}))],
  'output-property-added': [answer(object({})), answer(object({ a: text }))],
  'output-property-optional': [answer(object({ a: text }, ['a'])), answer(object({ a: text }))],
  'output-property-required': [answer(object({ a: text })), answer(object({ a: text }, ['a']))],
};

describe('the difference between two documents', () => {
  test.each(Object.entries(differences))('%s is told, and nothing else', (id, [before, after]) => {
    const changes = diffDocuments(before as never, after as never);
    expect(idsOf(changes)).toEqual([id]);
    expect(changes[0]?.level).toBe(diffRules[id as DiffRuleId].level);
    expect(diffDocuments(before as never, before as never)).toEqual([]);
  });

  test('goes through references, lists, unions and recursive schemas', () => {
    const schemas = (member: object) => ({
      Node: { type: 'object', properties: { value: member, children: { type: 'array', items: { $ref: '#/components/schemas/Node' } } } },
    });
    const node = (member: object) =>
      documentOf({ responses: { 200: json({ anyOf: [{ $ref: '#/components/schemas/Node' }, { type: 'null' }] }) } }, schemas(member));
    expect(diffDocuments(node({ type: 'integer' }), node({ type: 'number' }))).toMatchObject([
      { id: 'output-widened', operation: 'POST /x', place: '200 value', message: 'can be number now.' },
    ]);
    expect(diffDocuments(node(text), node(text))).toEqual([]);
  });

  test('asks for a version, and is told as text, JSON and Markdown', () => {
    const [before, after] = differences['parameter-removed'];
    const changes = diffDocuments(before as never, after as never);
    expect([bumpOf(changes), bumpOf([]), bumpOf(diffDocuments(after as never, before as never))]).toEqual(['major', 'patch', 'minor']);
    expect(renderChanges(changes, 'text')).toBe('breaking parameter-removed: POST /x: query a is gone.\nVersion: major.');
    expect(JSON.parse(renderChanges(changes, 'json'))).toMatchObject({ bump: 'major', changes: [{ id: 'parameter-removed' }] });
    expect(renderChanges(changes, 'markdown')).toContain('| breaking `parameter-removed` | POST /x: query a | is gone. |');
    expect(renderChanges([], 'text')).toBe('Nothing changed for callers.');
  });
});

describe('89: generic CRUD', () => {
  const notes = model('notes', {
    id: t.uuidv7().pk(),
    title: t.text(80),
    rank: t.int().dbDefault(0),
    state: t.enum(['open', 'done']).dbDefault('open'),
  });
  const apps: TestApp[] = [];
  afterAll(async () => {
    for (const app of apps) await app.close();
  });
  const declared = async (options: object) => {
    class NoteController extends CrudController(notes, { permission: isAuthenticated, unscoped: true, ...options } as never) {}
    const app = await testApp({ migrate: false, docs: false, mount: { '/v1': { '/notes': NoteController as unknown as Mountable } } });
    apps.push(app);
    return openApiDocument(app.app.routes, { title: 'Notes', version: '1', spec: '3.1' }) as never;
  };

  test('adding a filter is additive, removing one is breaking', async () => {
    const less = await declared({ filters: { rank: ['gte'] } });
    const more = await declared({ filters: { rank: ['gte', 'lt'], mine: filter(jsonSchema({ type: 'boolean' }), () => ({})) } });
    const added = diffDocuments(less, more);
    expect(new Set(added.map(({ level }) => level))).toEqual(new Set(['additive']));
    expect(added.filter(({ operation }) => operation === 'GET /v1/notes').map(({ id, place }) => [id, place])).toEqual([
      ['parameter-added', 'query rank__lt'],
      ['parameter-added', 'query mine'],
    ]);
    const removed = diffDocuments(more, less).filter(({ operation }) => operation === 'GET /v1/notes');
    expect(removed.map(({ id, level }) => [id, level])).toEqual([
      ['parameter-removed', 'breaking'],
      ['parameter-removed', 'breaking'],
    ]);
  });

  test('so is an operator, an ordering, an expansion, an operation and a writable column; the other way round they break', async () => {
    const less = await declared({ input: ['title'], operations: { destroy: false }, ordering: { by: ['rank'] }, page: { max: 50 } });
    const more = await declared({ ordering: { by: ['rank', 'title'] }, page: { max: 100 } });
    expect(new Set(diffDocuments(less, more).map(({ level }) => level))).toEqual(new Set(['additive']));
    const ids = idsOf(diffDocuments(more, less).filter(({ level }) => level === 'breaking'));
    for (const id of ['operation-removed', 'input-property-removed', 'input-narrowed'] as const) expect(ids).toContain(id);
  });
});
