import type { App } from '../../app/declare/module.ts';
import { requiredModule } from '../../app/declare/required-module.ts';
import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import { cancelErasure, legalHoldOf, openErasure, requestErasure } from '../../db/subjects/erasure-state.ts';
import type { Subject } from '../../db/subjects/subject.ts';
import { exportAnswer, exportAnswerSchema } from '../../crud/subjects/export-answer.ts';
import { sendArchive } from '../../crud/subjects/send-archive.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { Controller } from '../../http/compile/controller.ts';
import { controllerOptions } from '../../http/declare/controller-options.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { raw } from '../../http/declare/raw.ts';
import { route } from '../../http/declare/route.ts';
import type { Fault } from '../../options/fault.ts';
import { hasRecentLogin, isAuthenticated } from '../../permissions/built-ins.ts';
import { byLogin } from '../../permissions/by-login.ts';
import { all } from '../../permissions/permission.ts';
import { personalErrors } from './errors.ts';
import { requestExport, storedExports } from './exports.ts';
import { personalDataOf } from './state.ts';

const DAY_MS = 86_400_000;

const time = { type: 'string', format: 'date-time' } as const;

const ExportAnswer = exportAnswerSchema('PersonalExport');

interface ErasureAnswerBody {
  readonly state: 'waiting' | 'running';
  readonly requested_at: string;
  readonly due_at: string;
}

const ErasureAnswer = jsonSchema<ErasureAnswerBody>({
  title: 'PersonalErasure',
  type: 'object',
  properties: {
    state: { type: 'string', enum: ['waiting', 'running'] },
    requested_at: time,
    due_at: { ...time, description: 'Until then it can be taken back.' },
  },
  required: ['state', 'requested_at', 'due_at'],
  additionalProperties: false,
});

const own = { permission: all(isAuthenticated, byLogin) } as const;
// A session that was left open must neither take a copy of everything nor delete it.
const present = { permission: all(isAuthenticated, byLogin, hasRecentLogin) } as const;

/** People export and erase their own data. Mounted where the app likes: `'/personal-data': PersonalDataController`. */
export class PersonalDataController extends Controller {
  static override readonly tags: readonly string[] = ['personal data'];
  static readonly [controllerOptions] = {};

  requestExport = route.post(
    '/export',
    {
      ...present,
      status: 202,
      response: ExportAnswer,
      raises: [coreErrors.recent_login_required],
      summary: 'Ask for an export of your data',
      description: 'It is written in the background. While one is under way it stays; a new one takes the place of an older.',
    },
    async ({ db, user }) => {
      const wanted = await db.transaction((tx) => requestExport(tx, user.id), CONFLICT_RETRIES);
      personalDataOf(db).wake();
      return exportAnswer(wanted);
    },
  );

  readExport = route.get(
    '/export',
    { ...own, response: ExportAnswer, raises: [personalErrors.export_not_found], summary: 'Get the state of your export' },
    async ({ db, user }) => exportAnswer((await storedExports.find(db, user.id)) ?? missingExport()),
  );

  download = route.get(
    '/export/archive',
    {
      ...present,
      response: raw('application/zip'),
      tool: false,
      raises: [personalErrors.export_not_found, personalErrors.export_not_ready, coreErrors.recent_login_required],
      summary: 'Download your export',
      description: 'A ZIP archive: a file of JSON Lines for each table, your files, and a manifest with counts and checksums.',
    },
    async (context) => {
      const { db, user, signal } = context;
      const found = (await storedExports.find(db, user.id)) ?? missingExport();
      if (found.state !== 'ready') throw personalErrors.export_not_ready();
      return sendArchive(context, { name: 'personal-data', size: found.bytes, bytes: storedExports.bytes(db, user.id, found, signal) });
    },
  );

  requestErasure = route.post(
    '/erasure',
    {
      ...present,
      status: 202,
      response: ErasureAnswer,
      raises: [personalErrors.data_is_held, coreErrors.recent_login_required],
      summary: 'Ask for the erasure of your data',
      description: 'It begins when the grace period is over. Until then it can be taken back.',
    },
    async ({ db, user, principal, requestId }) => {
      const { settings, app } = personalDataOf(db);
      const subject = subjectOf(user.id);
      const dueAt = new Date(app.clock.now().getTime() + settings.graceDays * DAY_MS);
      const asked = await db.transaction(async (tx) => {
        if ((await legalHoldOf(tx, subject)) !== undefined) throw personalErrors.data_is_held();
        const known = await openErasure(tx, subject);
        if (known !== undefined) return known;
        const erasure = await requestErasure(tx, subject, { dueAt, by: user.id });
        await app.registry.audit?.record(tx, [
          { actor: principal, action: 'person.erasure_requested', target_type: 'person', target_id: user.id, request_id: requestId },
        ]);
        return erasure;
      }, CONFLICT_RETRIES);
      return erasureAnswer(asked);
    },
  );

  readErasure = route.get(
    '/erasure',
    { ...own, response: ErasureAnswer, raises: [personalErrors.erasure_not_found], summary: 'Get the state of your erasure' },
    async ({ db, user }) => erasureAnswer((await openErasure(db, subjectOf(user.id))) ?? missingErasure()),
  );

  cancelErasure = route.delete(
    '/erasure',
    {
      ...own,
      status: 204,
      raises: [personalErrors.erasure_not_found, personalErrors.erasure_begun],
      summary: 'Take back the erasure of your data',
    },
    async ({ db, user, principal, requestId }) => {
      const { app } = personalDataOf(db);
      const subject = subjectOf(user.id);
      await db.transaction(async (tx) => {
        if ((await openErasure(tx, subject)) === undefined) throw personalErrors.erasure_not_found();
        if (!(await cancelErasure(tx, subject))) throw personalErrors.erasure_begun();
        await app.registry.audit?.record(tx, [
          { actor: principal, action: 'person.erasure_cancelled', target_type: 'person', target_id: user.id, request_id: requestId },
        ]);
      }, CONFLICT_RETRIES);
    },
  );

  faults(app: App): readonly Fault[] {
    return requiredModule(app, 'personal', this.constructor.name, 'personalData()');
  }
}

function subjectOf(id: string): Subject {
  return { kind: 'person', id };
}

function missingExport(): never {
  throw personalErrors.export_not_found();
}

function missingErasure(): never {
  throw personalErrors.erasure_not_found();
}

function erasureAnswer({
  state,
  requested_at: requested,
  due_at: due,
}: {
  readonly state: string;
  readonly requested_at: Date;
  readonly due_at: Date;
}): ErasureAnswerBody {
  return { state: state === 'running' ? 'running' : 'waiting', requested_at: requested.toISOString(), due_at: due.toISOString() };
}
