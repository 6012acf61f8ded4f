import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import { any, Controller, coreErrors, defineErrors, filePart, hasScopes, isAuthenticated, multipart, page, raw, route } from 'kit';

/** Shapes that schemas can have and rows of a table do not: each is a feature of the document and of generated clients. */
const Circle = z.strictObject({ kind: z.literal('circle'), radius: z.number().positive() }).meta({ id: 'Circle' });
const Square = z.strictObject({ kind: z.literal('square'), side: z.number().positive() }).meta({ id: 'Square' });
const Shape = z.discriminatedUnion('kind', [Circle, Square]).meta({ id: 'Shape' });

interface Tree {
  readonly name: string;
  readonly children: readonly Tree[];
}
const Tree: z.ZodType<Tree> = z
  .strictObject({
    name: z.string(),
    get children() {
      return z.array(Tree);
    },
  })
  .meta({ id: 'Tree' });

const Thing = z
  .strictObject({
    id: z.uuid(),
    name: z
      .string()
      .min(1)
      .max(40)
      .meta({ examples: ['lamp'] }),
    at: z.iso.datetime(),
    day: z.iso.date().nullable(),
    shape: Shape,
    tree: Tree,
    pair: z.tuple([z.string(), z.int()]),
    labels: z.record(z.string(), z.string()),
    level: z.enum(['low', 'high']).default('low'),
    note: z.string().nullable().optional(),
    'odd name': z.boolean().optional(),
    class: z.int().optional(),
  })
  .meta({ id: 'Thing', description: 'Something with every kind of member. Ends */ or """ nothing.' });

export const thingErrors = defineErrors('things', {
  thing_taken: {
    status: 409,
    detail: 'The name is taken.',
    remedy: 'Choose another name.',
    members: { taken_by: { type: 'string', description: 'The id of the thing that has it.' } },
  },
  thing_odd: { status: 422, detail: 'The thing is odd.', remedy: 'Send an even one.' },
});

const sample = (name: string) => ({
  id: '019b0c1e-8f00-7000-8000-000000000001',
  name,
  at: '2026-01-31T12:00:00.000Z',
  day: null,
  shape: { kind: 'circle' as const, radius: 2 },
  tree: { name: 'root', children: [{ name: 'leaf', children: [] }] },
  pair: ['a', 1] as [string, number],
  labels: { color: 'red' },
  level: 'low' as const,
  'odd name': true,
  class: 7,
});

const Answer = z.strictObject({ bytes: z.int(), title: z.string() }).meta({ id: 'Received' });
const permission = hasScopes({ allowUnscoped: true });

/** How often an idempotent create ran, by its name. */
export const created = new Map<string, number>();

export class ThingController extends Controller {
  static override readonly tags = ['things'];
  static override readonly description = 'Things.';

  list = route.get(
    '/',
    {
      permission: any(isAuthenticated, permission),
      scope: 'things:read',
      query: z.strictObject({
        level: z.enum(['low', 'high']).optional(),
        tag: z.array(z.string()).optional(),
        from: z.string().optional(),
      }),
      response: page(Thing),
      summary: 'List things',
    },
    ({ query }) => ({ items: [sample((query.tag ?? ['lamp']).join('+'))], count: 1 }),
  );

  read = route.get('/:id', { permission, scope: 'things:read', response: Thing, responses: { 304: {} } }, ({ params, reply }) => {
    if (params.id === 'none') throw coreErrors.not_found();
    reply.header('etag', `"${params.id}"`);
    return sample(params.id);
  });

  create = route.post(
    '/',
    {
      permission,
      scope: 'things:write',
      // A response with a secret would not be kept for a second attempt.
      body: Thing.omit({ id: true })
        .extend({ secret: z.string().meta({ 'x-sensitive': true }).optional() })
        .meta({ id: 'NewThing' }),
      response: Thing,
      status: 201,
      atomic: true,
      idempotent: true,
      responses: { 200: { description: 'It was there already.', response: Thing, headers: { 'X-Found': 'true where it was found.' } } },
      raises: [thingErrors.thing_taken, thingErrors.thing_odd],
    },
    ({ body: given, reply }) => {
      const { secret: _secret, ...body } = given;
      created.set(body.name, (created.get(body.name) ?? 0) + 1);
      if (body.name === 'taken') throw thingErrors.thing_taken({ extensions: { taken_by: 'somebody' } });
      if (body.name === 'odd') throw thingErrors.thing_odd();
      if (body.name === 'found') reply.code(200);
      return { ...sample(body.name), ...body };
    },
  );

  search = route.query(
    '/search',
    { permission, scope: 'things:read', body: z.strictObject({ text: z.string() }), response: z.array(Thing) },
    ({ body }) => [sample(body.text)],
  );

  move = route.put(
    '/:id/tree',
    { permission, scope: 'things:write', body: Tree, response: Tree, deprecated: { since: '2026-01-01', sunset: '2030-01-01' } },
    ({ body }) => body,
  );

  report = route.get('/:id/report', { permission, scope: 'things:read', response: raw('text/csv') }, () => 'a,b\n1,2\n');

  put = route.put(
    '/:id/content',
    { permission, scope: 'things:write', body: raw(['text/plain', 'image/*'], { bytesMax: 1_000_000 }), response: Answer },
    ({ body, request }) => ({ bytes: body.length, title: String(request.headers['content-type']) }),
  );

  attach = route.post(
    '/:id/files',
    {
      permission,
      scope: 'things:write',
      body: multipart({ file: filePart({ bytesMax: 2_000_000, mediaTypes: ['text/plain'] }), title: z.string() }, { bytesMax: 3_000_000 }),
      response: Answer,
    },
    ({ body }) => ({ bytes: body.file.bytes.length, title: body.title }),
  );

  /** Numbers from the one after `Last-Event-ID` to ten. */
  count = route.stream(
    '/:id/numbers',
    { permission, scope: 'things:read', response: z.strictObject({ number: z.int() }).meta({ id: 'Counted' }) },
    async function* ({ request, signal }) {
      const last = Number(request.headers['last-event-id'] ?? 0);
      for (let number = last + 1; number <= 10; number += 1) {
        yield { id: String(number), event: 'number', data: { number } };
        await wait(5, undefined, { signal });
      }
    },
  );

  remove = route.delete('/:id', { permission, scope: 'things:write' }, () => undefined);
}
