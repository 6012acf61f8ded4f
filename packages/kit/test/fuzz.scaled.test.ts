import { wholeDocument } from './whole-document.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { scaled } from '../../../test/provision/scale.ts';
import type { App } from '../src/app/declare/module.ts';
import { openApiDocument, type OpenApiDocument } from '../src/openapi/document.ts';
import { describeDatabases } from '../src/testing/databases.ts';
import { seededRandom } from '../src/testing/sample/random.ts';
import { faultOf } from './fuzz/judge.ts';
import { OPERATIONS } from './fuzz/outcomes.ts';
import { planRequest, targetsOf, type FuzzTarget } from './fuzz/request-plan.ts';
import { count } from '../src/db/index.ts';
import { sampleApp } from './sample-app/app.ts';
import { items } from './sample-app/items.ts';
import { countOrders, createTables } from './sample-app/order-store.ts';

/** Fixed, so that a failure repeats; KIT_FUZZ_SEED sets another. */
const SEED = Number(process.env['KIT_FUZZ_SEED'] ?? 20_260_101);
const REQUESTS_PER_OPERATION = scaled(50, 1_000);

describeDatabases(
  'every operation, driven from its own document',
  (database) => {
    let app: App;
    let document: OpenApiDocument;
    let written = 0;
    const statuses = new Set<number>();
    const keys: string[] = [];
    let itemsWritten = 0;

    beforeAll(async () => {
      app = await sampleApp({ database: database.db, log: { level: 'silent' } }).ready();
      document = wholeDocument(openApiDocument(app.routes, { title: 'Sample', version: '1' })) as OpenApiDocument;
    });
    afterAll(() => app.close());

    async function attack(target: FuzzTarget, seed: number): Promise<object[]> {
      const random = seededRandom(seed);
      const faults: object[] = [];
      for (let round = 0; round < REQUESTS_PER_OPERATION; round += 1) {
        const request = planRequest(target, document, random, keys);
        const { method, url, headers, payload, remoteAddress } = request;
        const response = await app.inject({
          method: method as 'GET',
          url,
          headers,
          remoteAddress,
          ...(payload === undefined ? {} : { payload }),
        });
        const answer = { status: response.statusCode, contentType: String(response.headers['content-type']), body: response.body };
        statuses.add(answer.status);
        const fault = faultOf(target, request, answer);
        if (fault !== undefined) {
          faults.push({
            fault,
            operation: target.operationId,
            seed,
            round,
            url,
            headers,
            payload: payload?.toString('latin1').slice(0, 500),
            status: answer.status,
            body: answer.body.slice(0, 500),
          });
        }
        if (answer.status < 300) written += rowsWritten(target, answer.body);
        if (answer.status < 300) itemsWritten += target.operationId === 'item_create' ? 1 : target.operationId === 'item_remove' ? -1 : 0;
        if (answer.status === 201 && target.operationId.endsWith('_create')) keys.push(response.json<{ id: string }>().id);
      }
      return faults;
    }

    test('no request is answered with 5xx, every refusal is documented, every valid request is accepted', async () => {
      const targets = targetsOf(document);
      expect(targets.map(({ operationId }) => operationId).toSorted()).toEqual(OPERATIONS.toSorted());
      expect(targets.map(({ method }) => method)).toEqual(expect.arrayContaining(['GET', 'QUERY', 'POST', 'PUT', 'PATCH', 'DELETE']));
      const faults: object[] = [];
      for (const [index, target] of targets.entries()) faults.push(...(await attack(target, SEED + index)));
      expect(faults).toEqual([]);
      expect([...statuses]).toEqual(expect.arrayContaining([200, 201, 204, 400, 401, 403, 404, 413, 415, 422]));
    }, 1_800_000);

    test('afterwards the database holds exactly what was answered as written', async () => {
      expect(await countOrders(database.db)).toMatchObject({ orders: written, empty: 0, orphans: 0 });
      expect(written).toBeGreaterThan(0);
      expect(await count(database.db, items)).toBe(itemsWritten);
      expect(itemsWritten).toBeGreaterThan(0);
    });
  },
  { prepare: createTables },
);

function rowsWritten({ operationId }: FuzzTarget, body: string): number {
  if (operationId === 'order_create') return 1;
  if (operationId === 'order_bulk') return (JSON.parse(body) as unknown[]).length;
  return operationId === 'order_remove' ? -1 : 0;
}
