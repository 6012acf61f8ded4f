export { betterSqlite3Transaction } from '../../db/engine/foreign/better-sqlite3.ts';
export { drizzleTransaction } from '../../db/engine/foreign/drizzle.ts';
export { kyselyTransaction, type KyselyTransactionOptions } from '../../db/engine/foreign/kysely.ts';
export { mikroOrmTransaction } from '../../db/engine/foreign/mikro-orm.ts';
export { nodeSqliteTransaction } from '../../db/engine/foreign/node-sqlite.ts';
export { pgTransaction } from '../../db/engine/foreign/pg.ts';
export { prismaTransaction, type PrismaTransactionOptions } from '../../db/engine/foreign/prisma.ts';
export { typeOrmTransaction } from '../../db/engine/foreign/typeorm.ts';
export { type Audience, type AudienceOptions } from './publishing/audience.ts';
export { WebhookEndpointController } from './controller.ts';
export { createEndpoint, type CreatedEndpoint, type EndpointInput } from './endpoints/create-endpoint.ts';
export { cloudEvents, type CloudEventsOptions, type Envelope } from './destinations/envelope.ts';
export {
  destination,
  UndeliverableMessage,
  type Destination,
  type DestinationMessage,
  type DestinationOptions,
} from './destinations/destination.ts';
export { redisStreamDestination, type RedisStreamDestinationOptions } from './destinations/redis-stream-destination.ts';
export { deliverDue, startWorker, type DeliverOptions } from './delivery/deliver.ts';
export { deliverEvent } from './delivery/deliver-event.ts';
export type { FailureReason } from './delivery/delivery-outcome.ts';
export { disableEndpoint, enableEndpoint, type DisabledReason } from './endpoints/disable.ts';
export { rotateSecret, setSecret, signingSecret, type RotatedSecret } from './endpoints/endpoint-secret.ts';
export type { PublishRefused } from './errors.ts';
export { webhooks } from './module.ts';
export { eventType, type EventType, type EventTypeOptions } from './publishing/event-type.ts';
export { OnCommitTaskQueue } from './delivery/on-commit-task-queue.ts';
export type { WebhookOptions } from './options.ts';
export { pingEndpoint } from './endpoints/ping.ts';
export type { PublishOptions } from './publishing/checked-call.ts';
export { publish, publishMany, publishSync, type EventToPublish, type PublishedEvent } from './publishing/publish.ts';
export { recoverEndpoint, type Recovered } from './maintain/recover.ts';
export type { DeliverySummary } from './delivery/result-writer.ts';
export { retryDelivery } from './maintain/retry.ts';
export { generateSecret } from './signing/signature.ts';
export type { ForeignTransactionOptions, SqlExecutor } from '../../db/engine/foreign/sql-executor.ts';
export type { WebhookAttempt, WebhookDelivery, WebhookEndpoint, WebhookEvent } from './endpoints/store.ts';
export type { DeliveryTask, EnqueueDetails, TaskQueue } from './publishing/task-queue.ts';
export { webhookQueue, type WebhookQueue } from './delivery/webhook-queue.ts';
export {
  httpTransport,
  type HttpTransportOptions,
  type Transport,
  type TransportRequest,
  type TransportResult,
} from './network/transport.ts';
export { updateEndpoint, type EndpointEdit } from './endpoints/update-endpoint.ts';
export { URLPolicy, type URLPolicyOptions } from './network/url-policy.ts';
export { InvalidSignature, verifySignature } from './receiving/verify.ts';
export { useWebhooks, type UseWebhooksOptions, type Webhooks } from './webhooks.ts';
export type { DeliveryWorker, WorkerOptions } from './delivery/worker.ts';
