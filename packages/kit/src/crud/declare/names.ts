export { pascal, singular } from '../../db/component-name.ts';
