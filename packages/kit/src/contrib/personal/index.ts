export { PersonalDataController } from './controller.ts';
export { personalData } from './module.ts';
export type { PersonalDataOptions } from './options.ts';
