import { expect, test } from 'vitest';
import { createApp } from '../../app/assemble/create-app.ts';
import { unindexedColumns } from '../../crud/checks/unindexed.ts';
import { mountedResourceOf } from '../../crud/serve/controller.ts';
import { accounts } from '../accounts/index.ts';
import { QuotaController, RequestController, requests, UsageController } from './index.ts';

test('no list of the module asks for a warning about indexes that an application could do nothing about', async () => {
  const app = createApp({
    database: 'sqlite::memory:',
    modules: [accounts(), requests()],
    mount: { '/v1': { '/requests': RequestController, '/usage': UsageController, '/quotas': QuotaController } },
    log: { level: 'silent' },
  });
  const lists = app.controllers.map((controller) => mountedResourceOf(controller)).filter((each) => each !== undefined);
  expect(lists.map(({ policy }) => policy.name)).toEqual(expect.arrayContaining(['request', 'request_usage', 'request_quota']));
  expect(lists.flatMap((list) => unindexedColumns(list))).toEqual([]);
  await app.close();
});
