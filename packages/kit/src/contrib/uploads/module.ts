import type { App, Module } from '../../app/declare/module.ts';
import { StartUpError } from '../../app/check/start-up-error.ts';
import type { Database } from '../../db/engine/db.ts';
import { installationId, getOrCreateSecret } from '../../db/rows/secrets.ts';
import { findJobs } from '../jobs/rows/jobs.ts';
import { startJob } from '../jobs/start/start-job.ts';
import { uploadsAdmin } from './admin.ts';
import { processUploads } from './life/clean.ts';
import { uploadsCommand } from './commands.ts';
import type { Upload } from './declare/upload.ts';
import { uploadErrors } from './errors.ts';
import { objectsOf } from './life/reject.ts';
import { scheduleRemovals } from './life/remove-objects.ts';
import { FileController } from './serve/file-controller.ts';
import { uploadsInUse, type UploadJobs } from './rows/in-use.ts';
import { initial } from './migrations/0001_initial.ts';
import { tenantIndex } from './migrations/0002_tenant_index.ts';
import { uploadOwners, uploadRemovals, uploads as uploadTable } from './models.ts';
import { readUploadOptions, urlKeysOf, type UploadOptions } from './options.ts';
import type { CompletePolicy } from './declare/policy.ts';
import { DiskStore } from './stores/disk-store.ts';
import { removeJob, scanJob } from './life/upload-jobs.ts';
import { uploadRecordResource } from './serve/record-resource.ts';
import { uploadResource } from './serve/upload-resource.ts';

/**
 * Files of users: signed addresses, verified content, clean-up. Mount UploadController, or a subclass with a policy of its own.
 *
 * @example
 * ```ts
 * createApp({ modules: [accounts(), uploads({ store: diskStore({ folder: './data/files' }) })], mount: { '/v1': { '/files': UploadController } } });
 * ```
 */
export function uploads(options: UploadOptions): Module {
  const settings = readUploadOptions(options);
  const { store } = settings;
  let database: Database | undefined;
  let timer: NodeJS.Timeout | undefined;
  let working: Promise<unknown> = Promise.resolve();
  return {
    name: 'uploads',
    models: [uploadTable, uploadRemovals, uploadOwners],
    migrations: [initial, tenantIndex],
    errors: uploadErrors,
    commands: [uploadsCommand],
    jobs: [scanJob, removeJob],
    resources: [uploadRecordResource, uploadResource(() => database as Database)],
    admin: uploadsAdmin(store),
    ...(store instanceof DiskStore ? { mount: { [store.path]: FileController } } : {}),
    async beforeErase(tx, model, rows, erasing) {
      if (model !== uploadTable || erasing !== 'delete') return;
      const removals = await scheduleRemovals(
        tx,
        rows.flatMap((row) => objectsOf(tx, row as Upload)),
      );
      await removals.afterCommit(tx);
    },
    async filesOfRow(_app, model, row) {
      const { id, filename, final_key: key, state } = row as Upload;
      if (model !== uploadTable || state !== 'complete' || key === null) return [];
      return Promise.resolve([{ name: `uploads/${id}/${filename}`, open: () => store.read(key) }]);
    },
    async setup(app) {
      const urlKeys = store instanceof DiskStore ? await keysFor(app, settings.urlKeys) : [];
      store.attach({ clock: app.clock, urlKeys });
      const { clock, log, registry, db } = app;
      const { scan, downloadSeconds } = settings;
      const place = { prefix: store.prefix, installationId: await installationId(db) };
      uploadsInUse.bind(db, {
        store,
        scan,
        place,
        clock,
        log,
        registry,
        urlKeys,
        downloadSeconds,
        longestLifeSeconds: () => longestLife(app),
        jobs: () => (findJobs(db) === undefined ? null : startingJobs),
      });
      database = db;
    },
    start({ log }) {
      if (settings.cleanEverySeconds === 0 || database === undefined) return;
      const db = database;
      timer = setInterval(() => {
        working = working
          .then(() => processUploads(db))
          .catch((error: unknown) => log.error({ err: error }, 'uploads could not be cleaned up'));
      }, settings.cleanEverySeconds * 1000);
      timer.unref();
    },
    async stop() {
      clearInterval(timer);
      await working;
      if (database !== undefined) uploadsInUse.release(database);
      database = undefined;
    },
  };
}

const startingJobs: UploadJobs = {
  scan: (tx, uploadId) => startJob(tx, scanJob, { upload_id: uploadId }),
  remove: (tx, removalIds, dueAt) => startJob(tx, removeJob, { removal_ids: removalIds }, dueAt === null ? {} : { runAt: dueAt }),
};

/** Only addresses that the app serves itself need keys of its own. Without a setting they are signed with a secret of the installation. */
async function keysFor(app: App, option: readonly string[] | undefined): Promise<readonly string[]> {
  const keys = urlKeysOf(option, app.settings.uploadUrlKeys);
  if (keys === null) return [Buffer.from(await getOrCreateSecret(app.db, 'upload_url_key')).toString('hex')];
  if (!('fault' in keys)) return keys;
  throw new StartUpError([
    { id: 'E011', message: keys.fault, hint: 'node -e "console.log(crypto.randomBytes(32).toString(\'base64url\'))"' },
  ]);
}

/** Until when something of a mounted controller may still be completed, counted from its creation. */
function longestLife({ routes }: App): number {
  const lives = routes.map(({ metadata }) => {
    const policy = (metadata['uploads'] as { readonly policy?: CompletePolicy } | undefined)?.policy;
    return policy === undefined ? 0 : policy.expiresInSeconds + policy.graceSeconds;
  });
  return Math.max(0, ...lives);
}
