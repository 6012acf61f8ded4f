import { expect, test } from 'vitest';
import type { Authenticator } from '../../src/auth/index.ts';
import { accounts } from '../../src/contrib/accounts/index.ts';
import { grants, hasGrant, objectActions, objectGrants } from '../../src/contrib/grants/index.ts';
import { mcp } from '../../src/contrib/mcp/index.ts';
import { CrudController, resource } from '../../src/crud/index.ts';
import { createTable, migration, model, softDelete, t } from '../../src/db/index.ts';
import { testApp } from '../../src/testing/test-app.ts';

const tickets = model('tickets', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(50), ...softDelete() });
const ticketResource = resource(tickets, { owner: 'owner_id', access: grants(tickets) });
class TicketController extends CrudController(ticketResource, {
  permission: hasGrant('change'),
  restore: true,
  operations: { list: { tool: true } },
}) {}

const root: Authenticator = {
  name: 'root',
  securityScheme: { type: 'http', scheme: 'bearer' },
  authenticate: () => ({
    user: {
      id: '01890000-0000-7000-8000-000000000001',
      username: 'root',
      email: null,
      is_active: true,
      is_staff: true,
      is_superuser: true,
    },
    scheme: 'root',
    scopes: null,
  }),
};

test('a superuser lists the tools of operations that need a grant of their own resource', async () => {
  await using kit = await testApp({
    authenticators: [root],
    modules: [
      accounts(),
      objectGrants({ objects: [objectActions(tickets, { actions: ['view', 'change', 'delete'] })] }),
      mcp(),
      { name: 'desk', models: [tickets], migrations: [migration('0001_desk', [createTable('tickets', tickets.columns)])] },
    ],
    mount: { '/v1': { '/tickets': TicketController } },
  });
  const { body } = await kit.inject({
    method: 'POST',
    url: '/mcp',
    headers: { host: 'localhost', accept: 'application/json, text/event-stream' },
    payload: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  });
  expect(body).toContain('"name":"ticket_list"');
  expect(body).toContain('"deleted":');
});
