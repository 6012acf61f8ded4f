export { pascal, singular } from '../../db/declare/component-name.ts';
