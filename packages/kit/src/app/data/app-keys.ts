import type { Model } from '../../db/declare/model.ts';
import { type DataKeys, type KeyWrapping, readDataKeys } from '../../db/sealing/data-keys.ts';
import type { Fault } from '../../options/fault.ts';
import { isMembers } from '../../options/value-rule.ts';
import { StartUpError } from '../check/start-up-error.ts';
import type { Settings } from '../declare/config.ts';
import type { Module, ResourceDeclaration } from '../declare/module.ts';

/** The models with encrypted columns, of modules and of resources. */
export function encryptedModels(modules: readonly Module[], resources: readonly ResourceDeclaration[]): readonly Model[] {
  // Values that are no resource or no model are faults of their own.
  const declared: unknown[] = [...modules.flatMap(({ models = [] }) => models), ...resources.filter(isMembers).map(({ model }) => model)];
  return [...new Set(declared)].filter((each): each is Model => isMembers(each) && Object.values(each['columns'] ?? {}).some(isEncrypted));
}

function isEncrypted(column: unknown): boolean {
  return (column as Partial<Model['columns'][string]> | undefined)?.settings?.encrypted !== undefined;
}

/** E036: models with encrypted columns, and a setting without a key for them. */
function missingKeys(models: readonly Model[], { dataKeys, dataSearchKeys }: Settings): Fault[] {
  const missing = (setting: string, model: Model | undefined, value: string | undefined, columns: string): Fault[] =>
    model === undefined || (value !== undefined && value.trim() !== '')
      ? []
      : [{ id: 'E036', message: `The model "${model.name}" has ${columns}, and ${setting} is not set.`, hint: HINT }];
  const searched = models.find(({ columns }) => Object.values(columns).some(({ settings }) => settings.encrypted?.search !== undefined));
  return [
    ...missing('DATA_KEYS', models[0], dataKeys, 'encrypted columns'),
    ...missing('DATA_SEARCH_KEYS', searched, dataSearchKeys, 'encrypted columns that can be searched'),
  ];
}

const HINT = 'Create keys with `kit data-keys generate`.';

/** The keys of the settings, unwrapped. Needed when the databases open: the command that creates keys loads the app without them. */
export async function readAppKeys(models: readonly Model[], settings: Settings, wrapping: KeyWrapping | undefined): Promise<DataKeys> {
  const faults = missingKeys(models, settings);
  if (faults.length > 0) throw new StartUpError(faults);
  try {
    return await readDataKeys({ keys: settings.dataKeys, searchKeys: settings.dataSearchKeys, wrapping });
  } catch (error) {
    throw new StartUpError([{ id: 'E036', message: (error as Error).message, hint: HINT }]);
  }
}
