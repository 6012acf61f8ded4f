export { openApiDocument, openApiText, type OpenApiDocument, type OpenApiOptions } from './document.ts';
