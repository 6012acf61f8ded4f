import type { App, Module } from '../../app/declare/module.ts';
import { subjectPlans } from '../../crud/subjects/subject-plans.ts';
import type { Fault } from '../../options/fault.ts';
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
    checks: [{ name: 'personal_data', run: erasureFaults }],
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

/** E038: an erasure that cannot end stops the start. */
function erasureFaults(app: App): Fault[] {
  const faults = new Set(subjectPlans(app, 'person').flatMap(({ plan }) => plan.faults));
  return [...faults].map((fault) => ({ id: 'E038', message: `A person cannot be erased: ${fault}.` }));
}
