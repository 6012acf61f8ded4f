/** The example of a media type: its own, or one made from the schema. `isSent`: of a request's body. */
export function mediaExample(media: object, isSent?: boolean): unknown;
