export { betterSqlite3Transaction, type BetterSqlite3Database } from './adapters/better-sqlite3.ts';
export {
  drizzleTransaction,
  type DrizzlePostgresTransaction,
  type DrizzleSqliteTransaction,
  type DrizzleSqlTag,
} from './adapters/drizzle.ts';
export { kyselyTransaction, type KyselyTransaction, type KyselyTransactionOptions } from './adapters/kysely.ts';
export { mikroOrmTransaction, type MikroOrmEntityManager } from './adapters/mikro-orm.ts';
export { nodeSqliteTransaction } from './adapters/node-sqlite.ts';
export { pgTransaction, type PgClient } from './adapters/pg.ts';
export { prismaTransaction, type PrismaTransaction, type PrismaTransactionOptions } from './adapters/prisma.ts';
export { typeOrmTransaction, type TypeOrmEntityManager } from './adapters/typeorm.ts';
export { InvalidAudience, type Audience, type AudienceOptions } from './audience.ts';
export { WebhookEndpointController } from './controller.ts';
export { createEndpoint, type CreatedEndpoint, type EndpointInput } from './create-endpoint.ts';
export { deliverDue, startWorker, type DeliverOptions } from './deliver.ts';
export { deliverEvent } from './deliver-event.ts';
export type { FailureReason } from './delivery-outcome.ts';
export { disableEndpoint, enableEndpoint, ENDPOINT_DISABLED_EVENT, type DisabledReason } from './disable.ts';
export { rotateSecret, setSecret, signingSecret, type RotatedSecret } from './endpoint-secret.ts';
export { PublishRefused, webhookErrors, type PublishFault } from './errors.ts';
export { webhookAttempts, webhookDeliveries, webhookEndpoints, webhookEvents, webhookSubscriptions } from './models.ts';
export { webhooks } from './module.ts';
export { OnCommitTaskQueue } from './on-commit-task-queue.ts';
export type { WebhookOptions } from './options.ts';
export { PING_EVENT } from './ping-event.ts';
export { pingEndpoint } from './ping.ts';
export { publish, publishSync, type PublishedEvent, type PublishOptions } from './publish.ts';
export { recoverEndpoint, type Recovered } from './recover.ts';
export type { DeliverySummary } from './result-writer.ts';
export { retryDelivery } from './retry.ts';
export { SecretUnavailable } from './secret-box.ts';
export { generateKeyPair, generateSecret, publicKeyOf, type SigningKeyPair } from './signature.ts';
export type { ForeignTransactionOptions, SqlExecutor, SqlParameter, SyncSqlExecutor } from './sql-executor.ts';
export type { WebhookAttempt, WebhookDelivery, WebhookEndpoint, WebhookEvent } from './store.ts';
export type { DeliveryTask, EnqueueDetails, TaskQueue } from './task-queue.ts';
export { httpTransport, type HttpTransportOptions, type Transport, type TransportRequest, type TransportResult } from './transport.ts';
export { updateEndpoint, type EndpointEdit } from './update-endpoint.ts';
export { URLPolicy, type URLPolicyOptions } from './url-policy.ts';
export { InvalidSignature, verifySignature } from './verify.ts';
export { unbindWebhooks, useWebhooks, type UseWebhooksOptions, type Webhooks } from './webhooks.ts';
export type { DeliveryWorker, WorkerOptions } from './worker.ts';
