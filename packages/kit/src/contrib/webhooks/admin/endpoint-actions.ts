// What operators do to endpoints. Every change locks the endpoint and is recorded.
import { adminCount, adminDone, adminEach } from '../../../app/admin/each.ts';
import type { AdminAction, AdminContext } from '../../../app/admin/declaration.ts';
import { iso } from '../../../app/admin/iso.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { isUuid } from '../../../db/values/uuid.ts';
import { RECOVERED_MAX, recoverEndpoint, retryWaiting } from '../maintain/recover.ts';
import { disableCounting, enableEndpoint } from '../endpoints/disable.ts';
import { recordEndpointChange } from '../endpoints/endpoint-record.ts';
import { rotateSecret } from '../endpoints/endpoint-secret.ts';
import { countMissedOf, waitingOf } from '../endpoints/management-store.ts';
import { pingEndpoint } from '../endpoints/ping.ts';
import { webhookErrors } from '../errors.ts';
import { findEndpoint, lockEndpoint, type WebhookEndpoint } from '../endpoints/store.ts';
import { databaseOf, type AdminPlace } from './place.ts';
import { groupDigits } from '../../../app/admin/group-digits.ts';

/** Waiting deliveries are counted up to here. */
export const COUNTED_MAX = 10_000;
const RETRY_WAITING = 'Retry all waiting now';
const WORDS = ['delivery', 'deliveries'] as const;

export function endpointActions(place: AdminPlace): readonly AdminAction[] {
  const each = (
    shape: Omit<AdminAction, 'run' | 'dryRun'>,
    participle: string,
    work: (context: AdminContext, tx: Db, endpoint: WebhookEndpoint) => Promise<void>,
  ): AdminAction => ({
    ...shape,
    dryRun: participle,
    async run(context, ids) {
      const db = databaseOf(place, context);
      const result = await adminEach(context, ids, (id) => change(db, id, (tx, endpoint) => work(context, tx, endpoint)));
      return adminDone(result, ['endpoint', 'endpoints'], participle);
    },
  });
  return [
    each(
      {
        name: 'enable',
        label: 'Enable and clear failures',
        tone: 'neutral',
        on: 'selection',
        confirm: 'New events are sent again. To send missed events, use "Send missed events".',
      },
      'enabled',
      async (context, tx, before) => {
        await enableEndpoint(tx, before.id);
        await recordEndpointChange(tx, 'updated', { before, after: await findEndpoint(tx, before.id) }, author(context));
      },
    ),
    disableAction(place),
    each({ name: 'ping', label: 'Send a ping', tone: 'neutral', on: 'selection' }, 'pinged', async (context, tx, endpoint) => {
      const delivery = await pingEndpoint(tx, endpoint);
      await record(context, tx, endpoint, 'webhook_endpoint.pinged', { delivery_id: delivery.id });
    }),
    rotateAction(place),
    recoverAction(place),
    retryWaitingAction(place),
  ];
}

function rotateAction(place: AdminPlace): AdminAction {
  return {
    name: 'rotate-secret',
    label: 'Rotate the signing secret',
    tone: 'neutral',
    on: 'record',
    confirm: 'The new secret is shown once. The receiver needs it before the old secret expires.',
    confirmLabel: 'Rotate',
    async run(context, [id = '']) {
      const { endpoint, secret } = await change(databaseOf(place, context), id, async (tx, before) => {
        const rotated = await rotateSecret(tx, before.id);
        if (rotated === null) throw webhookErrors.endpoint_not_found();
        await recordEndpointChange(tx, 'secret_rotated', { before, after: rotated.endpoint }, author(context));
        return rotated;
      });
      const until = iso(endpoint.previous_secret_expires_at);
      const overlap = until === null ? 'The old secret has expired.' : `The old secret also signs until ${until}.`;
      return { message: `The endpoint has a new signing secret. ${overlap}`, id, secret: shownOnce(endpoint, secret) };
    },
  };
}

function recoverAction(place: AdminPlace): AdminAction {
  return {
    name: 'recover',
    label: 'Send missed events',
    tone: 'neutral',
    on: 'record',
    confirm:
      'Failed deliveries since then, and events published while it was disabled, are queued. The receiver may have received some of them.',
    confirmLabel: 'Send',
    fields: [{ name: 'since', label: 'Since', kind: 'time', required: true }],
    async preview(context, [id = ''], { since }) {
      const db = databaseOf(place, context);
      if (!isUuid(id)) throw webhookErrors.endpoint_not_found();
      const missed = await countMissedOf(db, id, { since: new Date(since as string), limit: RECOVERED_MAX });
      const { waiting } = await waitingOf(db, id, COUNTED_MAX);
      const queued = `${atMost(missed, RECOVERED_MAX)} will be queued.`;
      const others =
        waiting === 0
          ? ''
          : ` Not part of it: ${atMost(waiting, COUNTED_MAX)} that ${waiting === 1 ? 'waits' : 'wait'} for the next attempt. "${RETRY_WAITING}" is for that.`;
      return { message: `${queued}${others}`, tone: missed === 0 ? 'warning' : 'info' };
    },
    async run(context, [id = ''], { since }) {
      const from = new Date(since as string);
      const { requeued, added, complete } = await change(databaseOf(place, context), id, async (tx, endpoint) => {
        const recovered = await recoverEndpoint(tx, endpoint, from);
        await record(context, tx, endpoint, 'webhook_endpoint.recovered', { since: from, ...recovered });
        return recovered;
      });
      return { message: `${adminCount(requeued + added, WORDS)} queued.${complete ? '' : ' There may be more: run it again.'}`, id };
    },
  };
}

function retryWaitingAction(place: AdminPlace): AdminAction {
  return {
    name: 'retry-waiting',
    label: RETRY_WAITING,
    tone: 'neutral',
    on: 'selection',
    confirm: 'Pending deliveries are sent now. Their retry schedules and ordering do not change.',
    confirmLabel: 'Retry now',
    preview: async (context, ids) => ({
      message: `${await countWaiting(databaseOf(place, context), ids)} will be tried now.`,
      tone: 'info',
    }),
    async run(context, ids) {
      const db = databaseOf(place, context);
      let retried = 0;
      const { failures } = await adminEach(context, ids, (id) =>
        change(db, id, async (tx, endpoint) => {
          const count = await retryWaiting(tx, endpoint);
          await record(context, tx, endpoint, 'webhook_endpoint.waiting_retried', { deliveries: count });
          retried += count;
        }),
      );
      return { message: `${adminCount(retried, WORDS)} tried now.`, ...(failures.length === 0 ? {} : { failures }) };
    },
  };
}

function disableAction(place: AdminPlace): AdminAction {
  return {
    name: 'disable',
    dryRun: 'disabled',
    label: 'Disable',
    tone: 'bad',
    on: 'selection',
    reason: 'optional',
    confirm: {
      one: 'Nothing more is sent to it, and its pending deliveries fail. The owner’s other endpoints get an event about it.',
      many: 'Nothing more is sent to them, and their pending deliveries fail. The owners’ other endpoints get an event about it.',
    },
    preview: async (context, ids) => {
      const waiting = await countWaiting(databaseOf(place, context), ids);
      return waiting.startsWith('0 ')
        ? { message: 'No delivery waits.', tone: 'info' }
        : { message: `${waiting} will fail. They can be sent again after enabling.`, tone: 'warning' };
    },
    async run(context, ids) {
      const db = databaseOf(place, context);
      let failed = 0;
      const result = await adminEach(context, ids, (id) =>
        change(db, id, async (tx, before) => {
          failed += (await disableCounting(tx, before.id, 'manual')) ?? 0;
          await recordEndpointChange(tx, 'updated', { before, after: await findEndpoint(tx, before.id) }, author(context));
        }),
      );
      const { message, ...rest } = adminDone(result, ['endpoint', 'endpoints'], 'disabled');
      return {
        message: failed === 0 ? message : `${message} ${adminCount(failed, ['waiting delivery', 'waiting deliveries'])} failed.`,
        ...rest,
      };
    },
  };
}

async function countWaiting(db: Db, ids: readonly string[]): Promise<string> {
  let waiting = 0;
  for (const id of ids.filter(isUuid)) waiting += (await waitingOf(db, id, COUNTED_MAX)).waiting;
  return atMost(waiting, COUNTED_MAX);
}

function atMost(count: number, max: number): string {
  return count >= max ? `${groupDigits(max)} or more deliveries` : adminCount(count, WORDS);
}

/** Does the work with the endpoint, locked until the transaction ends. */
export async function change<R>(db: Db, id: string, work: (tx: Db, endpoint: WebhookEndpoint) => Promise<R>): Promise<R> {
  return db.transaction(async (tx) => {
    const endpoint = isUuid(id) ? await lockEndpoint(tx, id) : null;
    if (endpoint === null) throw webhookErrors.endpoint_not_found();
    return work(tx, endpoint);
  }, CONFLICT_RETRIES);
}

/** Who a change is recorded for. */
export function author({ principal, requestId }: AdminContext) {
  return { by: principal, requestId };
}

async function record(context: AdminContext, tx: Db, { id }: WebhookEndpoint, action: string, metadata: object): Promise<void> {
  const { audit, principal, requestId } = context;
  await audit?.record(tx, [{ actor: principal, action, target_type: 'webhook_endpoint', target_id: id, metadata, request_id: requestId }]);
}

/** What the receiver verifies signatures with. */
export function shownOnce({ signature, public_key: publicKey }: Pick<WebhookEndpoint, 'signature' | 'public_key'>, value: string) {
  if (signature === 'v1a' && publicKey !== null)
    return {
      label: 'Public key',
      value: publicKey,
      note: 'Receivers verify signatures with it. It is not secret, and stays on this page.',
    };
  return {
    label: 'Signing secret',
    value,
    note: 'It is shown this once. Give it to the operator of the receiver; if it is lost, rotate it.',
  };
}
