// Mistakes in jobs, uploads, grants and webhooks. `//: what is wrong | the text that the compiler must mark`.
import { createApp, isAuthenticated } from 'kit';
import { grant, grants, hasGrant, objectActions, objectGrants } from 'kit/contrib/grants';
import { job, jobs, startJob } from 'kit/contrib/jobs';
import { diskStore, UploadController, uploads } from 'kit/contrib/uploads';
import { createEndpoint, publish, WebhookEndpointController, webhooks } from 'kit/contrib/webhooks';
import { resource } from 'kit/crud';
import type { Db } from 'kit/db';
import { z } from 'zod';
import { customers, orderResource, orders } from './shop.ts';

declare const db: Db;
const input = z.object({ report_id: z.string() });
const sendReport = job('reports.send', { input, run: async () => undefined });
const orderActions = objectActions(orders, { actions: ['view', 'change', 'share'], sets: { editor: ['view', 'change'] } });

//: a job without run | { input }
export const j1 = () => job('reports.send', { input });
//: a misspelt option of a job | retries
export const j2 = () => job('reports.send', { input, retries: 3, run: async () => undefined });
//: a misspelt retry option | atempts
export const j3 = () => job('reports.send', { input, retry: { atempts: 3 }, run: async () => undefined });
//: an unknown backoff | backoff
export const j4 = () => job('reports.send', { input, retry: { backoff: 'exponent' }, run: async () => undefined });
//: a misspelt member of the input | reportid
export const j5 = () => job('reports.send', { input, run: async ({ input: given }) => void given.reportid });
//: a misspelt member of the job's context | sginal
export const j6 = () => job('reports.send', { input, run: async ({ sginal }) => undefined });
//: a result that does not fit its schema | ({ pages: 'two' })
export const j7 = () => job('reports.send', { input, result: z.object({ pages: z.int() }), run: async () => ({ pages: 'two' }) });
//: a schedule without a cron line | schedule
export const j8 = () => job('reports.send', { input, schedule: { timeZone: 'UTC', input: { report_id: '1' } }, run: async () => undefined });
//: a scheduled input that does not fit | report
export const j9 = () => job('reports.send', { input, schedule: { cron: '0 7 * * *', input: { report: '1' } }, run: async () => undefined });
//: a job started with input of another shape | reportid
export const j10 = () => startJob(db, sendReport, { reportid: '1' });
//: a job started by its name | 'reports.send'
export const j11 = () => startJob(db, 'reports.send', { report_id: '1' });
//: a misspelt option of startJob() | onwer
export const j12 = () => startJob(db, sendReport, { report_id: '1' }, { onwer: 'a' });
//: a timeout as text | timeoutMs
export const j13 = () => job('reports.send', { input, timeoutMs: '60s', run: async () => undefined });
//: jobs that are not a list | jobs
export const j14 = () => jobs({ jobs: sendReport });
//: a misspelt option of jobs() | job
export const j15 = () => jobs({ job: [sendReport] });
//: uploads without a store | {}
export const u1 = () => uploads({});
//: a store that is a path | store
export const u2 = () => uploads({ store: './data' });
//: a misspelt option of the store | { path: './data' }
export const u3 = () => uploads({ store: diskStore({ path: './data' }) });
//: a misspelt option of an upload policy | at startup
export const u4 = () => {
  class Invoices extends UploadController {
    static override readonly policy = { contentTypes: ['application/pdf'], bytesMax: 1000, bytesMin: 1 };
  }
  return createApp({ mount: { '/v1': { '/invoices': Invoices } } });
};
//: content types as one text | Letters
export const u5 = () =>
  class Letters extends UploadController {
    static override readonly policy = { contentTypes: 'application/pdf', bytesMax: 1000 };
  };
//: a size as text | Photos
export const u6 = () =>
  class Photos extends UploadController {
    static override readonly policy = { contentTypes: ['application/pdf'], bytesMax: '1 MB' };
  };
//: actions that are not a list | actions
export const g1 = () => objectActions(customers, { actions: 'view' });
//: a set with a misspelt action | 'chnage'
export const g2 = () => objectActions(customers, { actions: ['view', 'change'], sets: { editor: ['view', 'chnage'] } });
//: a creator that is no set or action | creator
export const g3 = () => objectActions(customers, { actions: ['view', 'change'], sets: { editor: ['view'] }, creator: 'editr' });
//: a misspelt parent column | through
export const g4 = () => objectActions(orders, { actions: ['view'], through: 'custmer_id' });
//: an unknown wide subject | 'everyone'
export const g5 = () => objectActions(orders, { actions: ['view'], subjects: ['everyone'] });
//: a misspelt action of hasGrant() | 'chnage'
export const g6 = () => hasGrant('chnage', orderActions);
//: an operation mapped to a misspelt action | approve
export const g7 = () => grants(orderActions, { operations: { approve: 'chnage' } });
//: a grant of a misspelt set | set
export const g8 = () => grant(db, { subject: 'user:1', set: 'editr', object: { type: orderActions, id: '1' } });
//: a grant of a misspelt action | action
export const g9 = () => grant(db, { subject: 'user:1', action: 'chnage', object: { type: orderActions, id: '1' } });
//: a grant without a subject | { set: 'editor', object: { type: orderActions, id: '1' } }
export const g10 = () => grant(db, { set: 'editor', object: { type: orderActions, id: '1' } });
//: a misspelt option of a grant | expires
export const g11 = () => grant(db, { subject: 'user:1', set: 'editor', expires: new Date(), object: { type: orderActions, id: '1' } });
//: objects that are models | orders
export const g12 = () => objectGrants({ objects: [orders] });
//: a permission as access | access
export const g13 = () => resource(orders, { access: isAuthenticated });
//: an event type of another type | 7
export const w1 = () => publish(db, 7, { id: 1 }, { owner: 'a' });
//: a key that is not a list | secretKeys
export const w2 = () => webhooks({ secretKeys: 'a' });
//: a misspelt option of webhooks() | retrys
export const w3 = () => webhooks({ secretKeys: [], retrys: 3 });
//: an event without an audience | publish
export const w4 = () => publish(db, 'order.created', { id: 1 });
//: a misspelt audience | onwer
export const w5 = () => publish(db, 'order.created', { id: 1 }, { onwer: 'a' });
//: an endpoint without a URL | { owner: 'a', events: ['*'] }
export const w6 = () => createEndpoint(db, { owner: 'a', events: ['*'] });
//: event types that are not a list | Hooks
export const w7 = () =>
  class Hooks extends WebhookEndpointController {
    static override readonly availableEvents = 'order.created';
  };
//: a misspelt event of a resource | creatd
export const w9 = () =>
  class OrderHooks extends WebhookEndpointController {
    static override readonly availableEvents = [orderResource.eventTypes.creatd];
  };
//: a misspelt transition in event types | pya
export const w10 = () =>
  class PaidHooks extends WebhookEndpointController {
    static override readonly availableEvents = [orderResource.eventTypes.pya];
  };
//: a pattern in place of an event type | at startup
export const w11 = () => {
  class AllHooks extends WebhookEndpointController {
    static override readonly availableEvents = ['order.*'];
  }
  return createApp({ modules: [webhooks()], mount: { '/v1': { '/hooks': AllHooks } } });
};
//: an unknown tenant field | TenantHooks
export const w8 = () =>
  class TenantHooks extends WebhookEndpointController {
    static override readonly tenantField = 'org_id';
  };
