import type { Module } from '../../app/declare/module.ts';
import { productionSecret } from '../../app/check/production-secret.ts';
import { standingCheck } from '../../app/check/standing-check.ts';
import { StartUpError } from '../../app/check/start-up-error.ts';
import { userTableCheck } from '../../app/check/user-table-check.ts';
import type { UserDirectory } from '../../auth/people/user-directory.ts';
import type { Database } from '../../db/engine/db.ts';
import { webhooksPortal } from './portal.ts';
import { webhooksAdmin } from './admin/admin.ts';
import { webhookErrors } from './errors.ts';
import { webhookMigrations } from './migrations/all.ts';
import { webhookModels } from './models.ts';
import { splitSecretKeys } from '../../db/sealing/secret-box.ts';
import { readWebhookOptions, type WebhookOptions } from './options.ts';
import { openApiWebhooks } from './publishing/event-type.ts';
import { publishMany } from './publishing/publish.ts';
import { webhooksCommand } from './commands/commands.ts';
import { startWorker } from './delivery/deliver.ts';
import { declareDestinations } from './destinations/declare-destinations.ts';
import { deleteEndpointsOf } from './endpoints/delete-endpoints-of.ts';
import { eraseEventsOf } from './maintain/erase-events.ts';
import { hindrancesIn } from './endpoints/owner-standing.ts';
import { ownersIn } from './endpoints/owners.ts';
import { deliveryResource } from './resources/deliveries.ts';
import { endpointResource } from './resources/endpoints.ts';
import { eventResource } from './resources/events.ts';
import { unreachableEvents } from './unreachable-events.ts';
import { bindWebhooks, unbindWebhooks, webhooksOf } from './webhooks.ts';
import { webhookMetrics, type WebhookMetrics } from './delivery/webhook-metrics.ts';
import type { DeliveryWorker } from './delivery/worker.ts';

/**
 * Transactional webhooks: the tables, `publish`, and a worker in this process with `worker: true`. Mount a subclass of
 * WebhookEndpointController for self-service; production runs `kit webhooks deliver --loop` beside the application.
 *
 * @example
 * ```ts
 * createApp({ modules: [accounts(), webhooks({ worker: true })], mount: { '/v1': { '/webhooks': WebhookEndpointController } } });
 * ```
 */
export function webhooks(options: WebhookOptions = {}): Module {
  const given = readWebhookOptions(options);
  const bound: Database[] = [];
  const workers: DeliveryWorker[] = [];
  let users: UserDirectory | null = null;
  let metrics: WebhookMetrics | undefined;
  return {
    name: 'webhooks',
    models: webhookModels,
    resources: [endpointResource, deliveryResource, eventResource],
    migrations: webhookMigrations,
    databases: given.databases,
    errors: webhookErrors,
    checks: [
      userTableCheck,
      standingCheck,
      { name: 'unreachable_events', run: unreachableEvents },
      productionSecret('webhook_secret_keys', ({ settings }) => (given.secretKeys ?? settings.webhookSecretKeys) !== undefined, {
        message: 'signing secrets of webhooks are stored in plain text.',
        hint: 'Set WEBHOOK_SECRET_KEYS. strictSecrets: true refuses to store a secret in plain text.',
      }),
    ],
    openApiWebhooks: openApiWebhooks(given.eventTypes, given.envelope.mode),
    commands: [webhooksCommand],
    portal: webhooksPortal,
    admin: webhooksAdmin(
      given.databases,
      given.eventTypes.map(({ name }) => name),
    ),
    provides: () => ({
      events: {
        publish: publishMany,
        databases: given.databases,
        erase: async (tx, records) => {
          if (bound.includes(tx.database)) await eraseEventsOf(tx, records);
        },
      },
      userChanges: [
        // A deleted user must not go on receiving events of the tenant. Owners that are not users are not handled here.
        async (tx, userId, change) => {
          if (users !== null && bound.includes(tx.database) && (await users.findById(tx, userId)) === null)
            await deleteEndpointsOf(tx, userId, change);
        },
      ],
      memberChanges: [
        // Nor must a former member. Endpoints belong to a user within a tenant: no other member could see them.
        async (tx, { userId, tenant }, change) => {
          if (bound.includes(tx.database)) await deleteEndpointsOf(tx, userId, change, tenant);
        },
      ],
    }),
    metrics(registry) {
      metrics = webhookMetrics(registry, () => bound);
    },
    install({ users: directory }) {
      users = directory;
    },
    setup({ databases, settings: app, clock, log, registry, db }) {
      const findHindrances = hindrancesIn(registry.standings, registry.tenants, db);
      const owners = ownersIn(users, db);
      const secretKeys = given.secretKeys ?? splitSecretKeys(app.webhookSecretKeys);
      const settings = readWebhookOptions({ ...options, secretKeys });
      for (const name of settings.databases) {
        const database = databases[name];
        if (database === undefined) continue;
        try {
          bindWebhooks(database, settings, { clock, log, registry, metrics, findHindrances, owners });
        } catch (error) {
          // Invalid keys: a setting to correct, not a fault of the program.
          throw error instanceof TypeError ? new StartUpError([{ id: 'E011', message: error.message }]) : error;
        }
        bound.push(database);
      }
    },
    async start() {
      for (const database of bound) {
        if (given.worker) workers.push(await startWorker(database));
        else await declareDestinations(webhooksOf(database));
      }
    },
    async stop() {
      await Promise.all(workers.splice(0).map((worker) => worker.stop()));
      for (const database of bound.splice(0)) unbindWebhooks(database);
    },
  };
}
