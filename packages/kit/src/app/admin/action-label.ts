import { labelOf } from './model-columns.ts';

/** The action of an audit entry as people read it: `webhook_endpoint.secret_rotated` is `Webhook endpoint secret rotated`. */
export function actionLabel(action: string): string {
  return labelOf(action.replaceAll(/[.:-]+/g, '_').replace(/_id$/, ' id'));
}
