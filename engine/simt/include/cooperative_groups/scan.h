/* GPU only: gpu_only.def tells the builder to say so at the line that includes this. */
