import type { App, Module } from '../../app/declare/module.ts';
import { erasureFaults } from '../../crud/subjects/erasure-faults.ts';
import { personalErrors } from './errors.ts';
import { initial } from './migrations/0001_initial.ts';
import { personalExportParts, personalExports } from './models.ts';
import { type PersonalDataOptions, readPersonalDataOptions } from './options.ts';
import { personalDataState } from './state.ts';
import { PersonalDataWorker } from './worker.ts';

/**
 * People export and erase their own data, and rows are removed when their retention is over. What is whose is declared in the models: `.person()`, `.personal()`,
 * `retention`. Mount PersonalDataController for self-service.
 *
 * @example
 * ```ts
 * createApp({ modules: [accounts(), personalData()], mount: { '/v1': { '/personal-data': PersonalDataController } } });
 * ```
 */
export function personalData(options: PersonalDataOptions = {}): Module {
  const settings = readPersonalDataOptions(options);
  let worker: PersonalDataWorker | undefined;
  let bound: App['db'] | undefined;
  return {
    name: 'personal',
    models: [personalExports, personalExportParts],
    migrations: [initial],
    errors: personalErrors,
    checks: [{ name: 'personal_data', run: (app) => erasureFaults(app, 'person') }],
    setup(app) {
      worker = new PersonalDataWorker(app, settings.exportDays);
      personalDataState.bind((bound = app.db), { app, settings, wake: () => worker?.wake() });
    },
    start() {
      worker?.start();
    },
    async stop() {
      await worker?.stop();
      if (bound !== undefined) personalDataState.release(bound);
      [worker, bound] = [undefined, undefined];
    },
  };
}
