/* Our part of CUPTI's interface against CUPTI's own headers: sizes, places, numbers. It only has to compile. */
#include <cstddef>

#include "engine/gpu/cupti.h"

#include <cuda.h>
#include <cupti_activity.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#define FIELD(ours, our, theirs, their)                                                                                \
    static_assert(offsetof(struct ours, our) == offsetof(theirs, their) &&                                             \
                      sizeof(((struct ours *)nullptr)->our) == sizeof(((theirs *)nullptr)->their),                     \
                  #ours "." #our " is not " #theirs "." #their)
#define SIZE(ours, last, theirs)                                                                                       \
    static_assert(CUPTI_SIZE(ours, last) == theirs##_STRUCT_SIZE, #ours " has not the size of " #theirs);              \
    FIELD(ours, size, theirs, structSize)
#define NUMBER(ours, theirs) static_assert((int)(ours) == (int)(theirs), #ours " is not " #theirs)

NUMBER(CUPTI_OK, CUPTI_SUCCESS);
NUMBER(CUPTI_INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
NUMBER(CUPTI_VIRTUALIZED_INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
NUMBER(CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
NUMBER(CUPTI_TYPE_RANGE_PROFILER, CUPTI_PROFILER_TYPE_RANGE_PROFILER);
NUMBER(CUPTI_RANGE_AUTO, CUPTI_AutoRange);
NUMBER(CUPTI_REPLAY_USER, CUPTI_UserReplay);
NUMBER(CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);

SIZE(cupti_initialize, reserved, CUpti_Profiler_Initialize_Params);

SIZE(cupti_chip, name, CUpti_Device_GetChipName_Params);
FIELD(cupti_chip, device, CUpti_Device_GetChipName_Params, deviceIndex);
FIELD(cupti_chip, name, CUpti_Device_GetChipName_Params, pChipName);

SIZE(cupti_availability, image, CUpti_Profiler_GetCounterAvailability_Params);
FIELD(cupti_availability, context, CUpti_Profiler_GetCounterAvailability_Params, ctx);
FIELD(cupti_availability, bytes, CUpti_Profiler_GetCounterAvailability_Params, counterAvailabilityImageSize);
FIELD(cupti_availability, image, CUpti_Profiler_GetCounterAvailability_Params, pCounterAvailabilityImage);

SIZE(cupti_host_initialize, host, CUpti_Profiler_Host_Initialize_Params);
FIELD(cupti_host_initialize, type, CUpti_Profiler_Host_Initialize_Params, profilerType);
FIELD(cupti_host_initialize, chip, CUpti_Profiler_Host_Initialize_Params, pChipName);
FIELD(cupti_host_initialize, availability, CUpti_Profiler_Host_Initialize_Params, pCounterAvailabilityImage);
FIELD(cupti_host_initialize, host, CUpti_Profiler_Host_Initialize_Params, pHostObject);

SIZE(cupti_host, host, CUpti_Profiler_Host_Deinitialize_Params);
FIELD(cupti_host, host, CUpti_Profiler_Host_Deinitialize_Params, pHostObject);

SIZE(cupti_metric, type, CUpti_Profiler_Host_GetMetricProperties_Params);
FIELD(cupti_metric, host, CUpti_Profiler_Host_GetMetricProperties_Params, pHostObject);
FIELD(cupti_metric, name, CUpti_Profiler_Host_GetMetricProperties_Params, pMetricName);
FIELD(cupti_metric, description, CUpti_Profiler_Host_GetMetricProperties_Params, pDescription);
FIELD(cupti_metric, hardware_unit, CUpti_Profiler_Host_GetMetricProperties_Params, pHwUnit);
FIELD(cupti_metric, dimension, CUpti_Profiler_Host_GetMetricProperties_Params, pDimUnit);
FIELD(cupti_metric, type, CUpti_Profiler_Host_GetMetricProperties_Params, metricType);

SIZE(cupti_add_metrics, n, CUpti_Profiler_Host_ConfigAddMetrics_Params);
FIELD(cupti_add_metrics, host, CUpti_Profiler_Host_ConfigAddMetrics_Params, pHostObject);
FIELD(cupti_add_metrics, names, CUpti_Profiler_Host_ConfigAddMetrics_Params, ppMetricNames);
FIELD(cupti_add_metrics, n, CUpti_Profiler_Host_ConfigAddMetrics_Params, numMetrics);

SIZE(cupti_config_size, bytes, CUpti_Profiler_Host_GetConfigImageSize_Params);
FIELD(cupti_config_size, host, CUpti_Profiler_Host_GetConfigImageSize_Params, pHostObject);
FIELD(cupti_config_size, bytes, CUpti_Profiler_Host_GetConfigImageSize_Params, configImageSize);

SIZE(cupti_config_image, image, CUpti_Profiler_Host_GetConfigImage_Params);
FIELD(cupti_config_image, host, CUpti_Profiler_Host_GetConfigImage_Params, pHostObject);
FIELD(cupti_config_image, bytes, CUpti_Profiler_Host_GetConfigImage_Params, configImageSize);
FIELD(cupti_config_image, image, CUpti_Profiler_Host_GetConfigImage_Params, pConfigImage);

SIZE(cupti_enable, profiler, CUpti_RangeProfiler_Enable_Params);
FIELD(cupti_enable, context, CUpti_RangeProfiler_Enable_Params, ctx);
FIELD(cupti_enable, profiler, CUpti_RangeProfiler_Enable_Params, pRangeProfilerObject);

SIZE(cupti_profiler, profiler, CUpti_RangeProfiler_Disable_Params);
FIELD(cupti_profiler, profiler, CUpti_RangeProfiler_Disable_Params, pRangeProfilerObject);
SIZE(cupti_profiler, profiler, CUpti_RangeProfiler_Start_Params);
FIELD(cupti_profiler, profiler, CUpti_RangeProfiler_Start_Params, pRangeProfilerObject);

SIZE(cupti_stop, all_passes, CUpti_RangeProfiler_Stop_Params);
FIELD(cupti_stop, profiler, CUpti_RangeProfiler_Stop_Params, pRangeProfilerObject);
FIELD(cupti_stop, pass, CUpti_RangeProfiler_Stop_Params, passIndex);
FIELD(cupti_stop, level, CUpti_RangeProfiler_Stop_Params, targetNestingLevel);
FIELD(cupti_stop, all_passes, CUpti_RangeProfiler_Stop_Params, isAllPassSubmitted);

SIZE(cupti_decode, dropped, CUpti_RangeProfiler_DecodeData_Params);
FIELD(cupti_decode, profiler, CUpti_RangeProfiler_DecodeData_Params, pRangeProfilerObject);
FIELD(cupti_decode, dropped, CUpti_RangeProfiler_DecodeData_Params, numOfRangeDropped);

SIZE(cupti_data_size, bytes, CUpti_RangeProfiler_GetCounterDataSize_Params);
FIELD(cupti_data_size, profiler, CUpti_RangeProfiler_GetCounterDataSize_Params, pRangeProfilerObject);
FIELD(cupti_data_size, names, CUpti_RangeProfiler_GetCounterDataSize_Params, pMetricNames);
FIELD(cupti_data_size, n, CUpti_RangeProfiler_GetCounterDataSize_Params, numMetrics);
FIELD(cupti_data_size, max_ranges, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumOfRanges);
FIELD(cupti_data_size, max_nodes, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumRangeTreeNodes);
FIELD(cupti_data_size, bytes, CUpti_RangeProfiler_GetCounterDataSize_Params, counterDataSize);

SIZE(cupti_data_initialize, image, CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
FIELD(cupti_data_initialize, profiler, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, pRangeProfilerObject);
FIELD(cupti_data_initialize, bytes, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, counterDataSize);
FIELD(cupti_data_initialize, image, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, pCounterData);

SIZE(cupti_set_config, target_level, CUpti_RangeProfiler_SetConfig_Params);
FIELD(cupti_set_config, profiler, CUpti_RangeProfiler_SetConfig_Params, pRangeProfilerObject);
FIELD(cupti_set_config, config_bytes, CUpti_RangeProfiler_SetConfig_Params, configSize);
FIELD(cupti_set_config, config, CUpti_RangeProfiler_SetConfig_Params, pConfig);
FIELD(cupti_set_config, data_bytes, CUpti_RangeProfiler_SetConfig_Params, counterDataImageSize);
FIELD(cupti_set_config, data, CUpti_RangeProfiler_SetConfig_Params, pCounterDataImage);
FIELD(cupti_set_config, range, CUpti_RangeProfiler_SetConfig_Params, range);
FIELD(cupti_set_config, replay, CUpti_RangeProfiler_SetConfig_Params, replayMode);
FIELD(cupti_set_config, max_ranges, CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass);
FIELD(cupti_set_config, levels, CUpti_RangeProfiler_SetConfig_Params, numNestingLevels);
FIELD(cupti_set_config, min_level, CUpti_RangeProfiler_SetConfig_Params, minNestingLevel);
FIELD(cupti_set_config, pass, CUpti_RangeProfiler_SetConfig_Params, passIndex);
FIELD(cupti_set_config, target_level, CUpti_RangeProfiler_SetConfig_Params, targetNestingLevel);

SIZE(cupti_data_info, n_ranges, CUpti_RangeProfiler_GetCounterDataInfo_Params);
FIELD(cupti_data_info, data, CUpti_RangeProfiler_GetCounterDataInfo_Params, pCounterDataImage);
FIELD(cupti_data_info, bytes, CUpti_RangeProfiler_GetCounterDataInfo_Params, counterDataImageSize);
FIELD(cupti_data_info, n_ranges, CUpti_RangeProfiler_GetCounterDataInfo_Params, numTotalRanges);

SIZE(cupti_evaluate, values, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
FIELD(cupti_evaluate, host, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pHostObject);
FIELD(cupti_evaluate, data, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pCounterDataImage);
FIELD(cupti_evaluate, bytes, CUpti_Profiler_Host_EvaluateToGpuValues_Params, counterDataImageSize);
FIELD(cupti_evaluate, range, CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex);
FIELD(cupti_evaluate, names, CUpti_Profiler_Host_EvaluateToGpuValues_Params, ppMetricNames);
FIELD(cupti_evaluate, n, CUpti_Profiler_Host_EvaluateToGpuValues_Params, numMetrics);
FIELD(cupti_evaluate, values, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pMetricValues);

/* Every version of the record begins like this one. */
FIELD(cupti_kernel_record, kind, CUpti_ActivityKernel9, kind);
FIELD(cupti_kernel_record, registers, CUpti_ActivityKernel9, registersPerThread);
FIELD(cupti_kernel_record, start_ns, CUpti_ActivityKernel9, start);
FIELD(cupti_kernel_record, end_ns, CUpti_ActivityKernel9, end);
