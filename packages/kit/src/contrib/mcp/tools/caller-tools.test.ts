import { expect, test } from 'vitest';
import { createApp } from '../../../app/assemble/create-app.ts';
import type { CompiledRoute } from '../../../http/exchange/compiled-route.ts';
import { Controller } from '../../../http/compile/controller.ts';
import type { Exchange } from '../../../http/exchange/exchange.ts';
import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { route } from '../../../http/declare/route.ts';
import { allowAny } from '../../../permissions/built-ins.ts';
import { CallerTools } from './caller-tools.ts';

const Out = jsonSchema<object>({ type: 'object', properties: { ok: { type: 'boolean' } } });

test('a tool is described once for each kind of caller, not for each caller', async () => {
  let made = 0;
  class ThingController extends Controller {
    read = {
      ...route.get('/', { permission: allowAny, response: Out, tool: true, summary: 'Read the things' }, () => ({})),
      schemasFor: async (exchange: object) => ({
        key: (exchange as { kind: string }).kind,
        make: () => {
          made += 1;
          return { response: { type: 'object', properties: { [(exchange as { kind: string }).kind]: { type: 'string' } } } };
        },
      }),
    };
  }
  const app = createApp({ database: 'sqlite::memory:', mount: { '/v1': { '/things': ThingController } }, log: { level: 'silent' } });
  const [read] = app.routes as [CompiledRoute];
  const tools = new CallerTools([read]);
  const described = (caller: string, kind: string) => tools.described({ route: read, caller, kind } as unknown as Exchange);
  const first = await described('ada', 'plain');
  for (let count = 0; count < 1000; count += 1) expect(await described(`caller ${count}`, 'plain')).toBe(first);
  expect(made).toBe(1);
  expect((await described('grace', 'staff')).entry.outputSchema?.['properties']).toEqual({ staff: { type: 'string' } });
  expect(made).toBe(2);
});
