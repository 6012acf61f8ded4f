import type { App, Command } from '../../app/index.ts';
import { addDeliver } from './deliver-command.ts';

/** `kit webhooks …` */
export const webhooksCommand: Command<App> = {
  name: 'webhooks',
  summary: 'send due webhooks',
  configure(command, context) {
    addDeliver(command, context);
  },
};
