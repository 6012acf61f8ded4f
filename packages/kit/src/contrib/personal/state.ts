import { moduleState } from '../../app/assemble/module-state.ts';
import type { App } from '../../app/declare/module.ts';
import type { Db } from '../../db/engine/db.ts';
import type { PersonalDataSettings } from './options.ts';

interface PersonalDataState {
  readonly app: App;
  readonly settings: PersonalDataSettings;
  /** Something waits: the worker of this process looks at once. */
  wake(): void;
}

export const personalDataState = moduleState<PersonalDataState>({
  name: 'Personal data',
  setUp: 'add personalData() to the modules of createApp',
});

export function personalDataOf(db: Db): PersonalDataState {
  return personalDataState.of(db);
}
